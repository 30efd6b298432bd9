/**
 * Converts records to lines of JSON and back: the format of export and import. Instants are ISO 8601, payloads are JSON values;
 * every field survives the round trip. docs/moving.md describes the lines.
 */
import { HoldfastError } from '../errors.ts'
import { checkLimits } from '../flow/limits.ts'
import type { QueueFlow } from '../flow/queue-flow.ts'
import type { KeyRecord } from '../idempotency.ts'
import { release } from '../machine.ts'
import { checkTaskOptions, type ScheduleRecord } from '../schedules/schedule.ts'
import { checkGroup, checkId, checkName } from '../submission.ts'
import { applyChange, type Instant, type TaskRecord } from '../task.ts'
import { atMostLast, isInstant } from '../values/instants.ts'
import { duration, ENTRY_INSTANTS, record, TASK_CHECKS, text } from './portable-checks.ts'

export const EXPORT_VERSION = 1

/** The number of lines of each kind, on the last line of a file. */
export interface ExportCounts {
  readonly queues: number
  readonly pauses: number
  readonly tasks: number
  /** Keys that have outlived their task; the others are exported with their tasks. */
  readonly keys: number
  readonly schedules: number
}

export interface ExportHeader {
  readonly holdfast: 'export'
  readonly version: number
  /** The address it came from. */
  readonly source: string
  readonly at: string
  /** A filtered export has only the matching tasks. */
  readonly filtered: boolean
}

interface PortablePause {
  readonly queue: string
  readonly at: string
  readonly by: string
  readonly reason?: string
}

export type ExportLine =
  | { readonly kind: 'queue'; readonly queue: string; readonly flow?: QueueFlow }
  | { readonly kind: 'pause'; readonly pause: PortablePause }
  | { readonly kind: 'task'; readonly task: TaskRecord; readonly key: KeyRecord | null }
  | { readonly kind: 'key'; readonly key: KeyRecord }
  | { readonly kind: 'schedule'; readonly schedule: ScheduleRecord }

type Json = Record<string, unknown>

const TASK_INSTANTS =
  'availableAt expiresAt expiredAt cancelRequestedAt createdAt updatedAt startedAt completedAt'.split(' ')
const JOURNAL_INSTANTS = ['at', 'until']

// ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const printLine = (line: ExportLine): string => {
  switch (line.kind) {
    case 'queue':
      return JSON.stringify({ queue: line.queue, ...(line.flow === undefined ? null : { flow: line.flow }) })
    case 'pause':
      return JSON.stringify({ pause: line.pause })
    case 'task':
      return JSON.stringify({ task: outTask(line.task), ...(line.key === null ? null : { key: outKey(line.key) }) })
    case 'key':
      return JSON.stringify({ key: outKey(line.key) })
    case 'schedule':
      return JSON.stringify({ schedule: outSchedule(line.schedule) })
  }
}

const outTask = ({
  input,
  output,
  progress,
  mark: _,
  parked,
  generation,
  hasJournal,
  journal,
  ...task
}: TaskRecord): Json => ({
  ...isoAt(task, TASK_INSTANTS),
  ...outPayload('input', input, task.encoding),
  // Omitted if there is none: null is a value.
  ...(output === null ? null : outPayload('output', output, task.outputEncoding)),
  ...(progress === null ? null : outPayload('progress', progress, 'json')),
  lease: task.lease && isoAt(task.lease, ['claimedAt', 'expiresAt']),
  lastError: task.lastError && isoAt(task.lastError, ['at']),
  // Omitted where there is none: most tasks have no steps.
  ...(parked === null ? null : { parked: isoAt(parked, ['until']) }),
  ...(generation === 0 ? null : { generation }),
  ...(hasJournal ? { hasJournal, journal: journal.map((entry) => isoAt(entry, JOURNAL_INSTANTS)) } : null),
  history: task.history.map((entry) => isoAt(entry, ENTRY_INSTANTS)),
})

const outKey = (key: KeyRecord): Json => isoAt(key, ['expiresAt'])

const SCHEDULE_INSTANTS = ['origin', 'cursor', 'createdAt', 'updatedAt']

const outSchedule = ({ input, firing, lastSkipped, past, moved: _, ...schedule }: ScheduleRecord): Json => ({
  ...isoAt(schedule, SCHEDULE_INSTANTS),
  ...outPayload('input', input, schedule.encoding),
  firing: firing && { ...isoAt(firing, ['at']), slots: firing.slots.map(iso) },
  lastSkipped: lastSkipped && isoAt(lastSkipped, ['slot']),
  ...(past && { past: past.map((one) => isoAt(one, ['slot'])) }),
})

/** As a value, unless re-encoding would change its text: then as text. */
const outPayload = (name: string, text: string, encoding: string): Json => {
  if (encoding !== 'json') return { [name]: text }
  const value = parsed(text)
  return value !== undefined && JSON.stringify(value.value) === text
    ? { [name]: value.value }
    : { [`${name}Text`]: text }
}

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const iso = (at: Instant): string => new Date(at).toISOString()

const isoAt = (record: object, names: readonly string[]): Json => {
  const shown: Json = { ...record }
  for (const name of names) if (typeof shown[name] === 'number') shown[name] = iso(shown[name])
  return shown
}

// ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Parses a line; the header and the end of a file are returned as they are. Throws INVALID_EXPORT with the line number. */
export const readLine = (text: string, n: number): ExportLine | ExportHeader | { readonly end: ExportCounts } => {
  try {
    const line = object(parsed(text)?.value, 'it')
    if ('holdfast' in line) return readHeader(line)
    if ('end' in line) return { end: object(line['end'], 'end') as unknown as ExportCounts }
    if ('task' in line) {
      const task = inTask(object(line['task'], 'task'))
      return { kind: 'task', task, key: 'key' in line ? inKey(object(line['key'], 'key')) : null }
    }
    if ('key' in line) return { kind: 'key', key: inKey(object(line['key'], 'key')) }
    if ('schedule' in line) return { kind: 'schedule', schedule: inSchedule(object(line['schedule'], 'schedule')) }
    if ('queue' in line) return inQueue(line)
    if ('pause' in line) return { kind: 'pause', pause: inPause(object(line['pause'], 'pause')) }
    throw wrong('it', 'is no line of an export')
  } catch (error) {
    const why = error instanceof HoldfastError || error instanceof RangeError ? error.message : String(error)
    throw new HoldfastError('INVALID_EXPORT', `line ${n}: ${why}`, { line: n }, error)
  }
}

const readHeader = (line: Json): ExportHeader => {
  if (line['holdfast'] !== 'export') throw wrong('holdfast', 'is not an export')
  if (line['version'] !== EXPORT_VERSION)
    throw wrong('version', `is ${String(line['version'])}; this release reads version ${EXPORT_VERSION}`)
  return line as unknown as ExportHeader
}

const inTask = (given: Json): TaskRecord => {
  const { inputText, outputText, progressText, input: _, output: __, progress: ___, ...fields } = given
  const encoding = oneOf(given['encoding'], 'encoding', ['json', 'base64'])
  const outputEncoding = oneOf(given['outputEncoding'], 'outputEncoding', ['json', 'base64'])
  const task = {
    ...msAt(fields, TASK_INSTANTS, 'task'),
    input: inPayload(given, 'input', inputText, encoding),
    output: 'output' in given || 'outputText' in given ? inPayload(given, 'output', outputText, outputEncoding) : null,
    progress:
      'progress' in given || 'progressText' in given ? inPayload(given, 'progress', progressText, 'json') : null,
    outputError: given['outputError'] ?? null,
    group: given['group'] ?? null,
    lease: given['lease'] && msAt(object(given['lease'], 'lease'), ['claimedAt', 'expiresAt'], 'lease'),
    lastError: given['lastError'] && msAt(object(given['lastError'], 'lastError'), ['at'], 'lastError'),
    parked: given['parked'] == null ? null : msAt(object(given['parked'], 'parked'), ['until'], 'parked'),
    generation: given['generation'] ?? 0,
    hasJournal: given['hasJournal'] ?? false,
    journal: array(given['journal'] ?? [], 'journal').map((entry) =>
      msAt(object(entry, 'journal'), JOURNAL_INSTANTS, 'journal'),
    ),
    history: array(given['history'], 'history').map((entry) =>
      msAt(object(entry, 'history'), ENTRY_INSTANTS, 'history'),
    ),
  }
  for (const [name, isRight] of TASK_CHECKS)
    if (!isRight(task[name as keyof typeof task]))
      throw wrong(`task.${name}`, `cannot be ${shown(task[name as keyof typeof task])}`)
  for (const name of Object.keys(task)) if (!TASK_FIELDS.has(name)) throw wrong(`task.${name}`, 'is no field of a task')
  const record = task as unknown as TaskRecord
  checkId(record.id)
  checkName(record.queue, 'queue')
  checkName(record.type, 'type')
  if ((record.status === 'running') !== (record.lease !== null))
    throw wrong('task.lease', `does not go with ${record.status}`)
  return record
}

const TASK_FIELDS: ReadonlySet<string> = new Set([
  ...TASK_CHECKS.map(([name]) => name),
  'input',
  'output',
  'progress',
  'encoding',
  'outputEncoding',
])

const inKey = (given: Json): KeyRecord => {
  const key = msAt(given, ['expiresAt'], 'key')
  const isRight = text(key['key']) && text(key['taskId']) && text(key['hash']) && isInstant(key['expiresAt'])
  if (!isRight || key['key'] === '' || typeof key['exact'] !== 'boolean')
    throw wrong('key', 'has a field that is not right')
  checkId(key['taskId'] as string)
  return key as unknown as KeyRecord
}

const inSchedule = (given: Json): ScheduleRecord => {
  const { inputText, input: _, ...fields } = given
  const { firing, lastSkipped, past } = given
  const encoding = oneOf(given['encoding'], 'encoding', ['json', 'base64'])
  const fires = firing === null ? null : msAt(object(firing, 'firing'), ['at'], 'firing')
  const schedule = {
    ...msAt(fields, SCHEDULE_INSTANTS, 'schedule'),
    input: inPayload(given, 'input', inputText, encoding),
    firing: fires && { ...fires, slots: array(fires['slots'], 'slots').map((slot) => ms(slot, 'slots')) },
    lastSkipped: lastSkipped && msAt(object(lastSkipped, 'lastSkipped'), ['slot'], 'lastSkipped'),
    ...(past === undefined
      ? null
      : { past: array(past, 'past').map((one) => msAt(object(one, 'past'), ['slot'], 'past')) }),
  } as unknown as ScheduleRecord
  checkName(schedule.id, 'id')
  checkName(schedule.type, 'type')
  const isTimed = text(schedule.cron)
    ? text(schedule.timezone)
    : duration(schedule.every) && schedule.every !== 0 && text(schedule.mode)
  if (
    !isTimed ||
    !text(schedule.incarnation) ||
    !isInstant(schedule.cursor) ||
    !isInstant(schedule.origin) ||
    !isInstant(schedule.createdAt) ||
    !isInstant(schedule.updatedAt) ||
    !record(schedule.options)
  )
    throw wrong('schedule', 'has a field that is not right')
  checkTaskOptions(schedule.type, { text: schedule.input, encoding: schedule.encoding }, schedule.options)
  return schedule
}

const inQueue = (line: Json): ExportLine => {
  const queue = checkName(line['queue'] as string, 'queue')
  if (line['flow'] === undefined) return { kind: 'queue', queue }
  const flow = object(line['flow'], 'flow') as QueueFlow
  if (flow.limits !== undefined) {
    const { at: _, by: __, ...limits } = flow.limits
    checkLimits(limits)
  }
  for (const [group, pause] of Object.entries(flow.pausedGroups ?? {})) {
    checkGroup(group)
    if (!record(pause) || !text(pause.at) || !text(pause.by)) throw wrong(`the pause of group '${group}'`, 'is none')
  }
  return { kind: 'queue', queue, flow }
}

const inPause = (pause: Json): PortablePause => {
  checkName(pause['queue'] as string, 'queue')
  if (!text(pause['at']) || !text(pause['by'])) throw wrong('pause', 'has a field that is not right')
  return pause as unknown as PortablePause
}

const inPayload = (given: Json, name: string, asText: unknown, encoding: string): string => {
  if (typeof asText === 'string') return asText
  const value = given[name]
  if (value === undefined) throw wrong(`task.${name}`, 'is missing')
  if (encoding === 'json') return JSON.stringify(value)
  if (typeof value !== 'string') throw wrong(`task.${name}`, 'must be base64')
  return value
}

const msAt = (given: Json, names: readonly string[], what: string): Json => {
  const read: Json = { ...given }
  for (const name of names) if (typeof read[name] === 'string') read[name] = ms(read[name], `${what}.${name}`)
  return read
}

const ms = (value: unknown, what: string): Instant => {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(at)) throw wrong(what, `cannot be ${shown(value)}`)
  // An older release accepted later years. The difference does not matter.
  return atMostLast(at)
}

const object = (value: unknown, what: string): Json => {
  if (record(value)) return value as Json
  throw wrong(what, 'is not a JSON object')
}

const array = (value: unknown, what: string): readonly unknown[] => {
  if (Array.isArray(value)) return value
  throw wrong(what, 'is not a list')
}

const oneOf = (value: unknown, what: string, words: readonly string[]): string => {
  if (words.includes(value as string)) return value as string
  throw wrong(what, `cannot be ${shown(value)}`)
}

const shown = (value: unknown): string => (JSON.stringify(value) ?? 'undefined').slice(0, 60)

const wrong = (what: string, why: string): HoldfastError => new HoldfastError('INVALID_EXPORT', `${what} ${why}`)

// ── import ───────────────────────────────────────────────────────────────────────────────────────────

/**
 * A task that was running when it was exported has no worker here: it becomes pending, as if the worker had released it. Its
 * next claim has a higher fence. No counter changes, because the outcome of that run is unknown.
 */
export const requeueImported = (task: TaskRecord, by: string, now: Instant): TaskRecord => {
  if (task.status !== 'running' || task.lease === null) return task
  const change = release(task, { token: task.lease.token }, now)
  return applyChange(task, { ...change, entry: { ...change.entry, by, reason: 'it was running when it was exported' } })
}
