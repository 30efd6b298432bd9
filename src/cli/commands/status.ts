/** `holdfast status ID`, also `get`: prints the record, one fact per line, with the field names of the source designs. */
import type { Instant, ShownSignal, ShownStep, Task } from '../../index.ts'
import { errorTree, headOf } from '../output/error-lines.ts'
import { EXIT } from '../output/exit-codes.ts'
import { fitted, instant, out, outJson, paint, printable, relative, statusStyle } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    if (options.json) outJson(await client.get(id!))
    else {
      const { task, now, sentence } = await client.why(id!)
      for (const [name, value] of [...facts(task, now), ['why', printable(sentence)] as const])
        out(name === '' ? `  ${value}` : `${paint('dim', `${name}:`)} ${value}`)
    }
    return EXIT.ok
  })

type Fact = readonly [name: string, value: string]

const facts = (task: Task, now: Instant): Fact[] => {
  const { lease, lastError } = task
  const when = (at: Instant): string => `${instant(at)} (${relative(at, now)})`
  const maybe = (name: string, value: string | null | undefined): Fact[] =>
    value === null || value === undefined ? [] : [[name, value]]
  const at = (name: string, value: Instant | null): Fact[] => maybe(name, value === null ? null : when(value))
  const tags = Object.entries(task.tags).map(([name, value]) => `${name}=${value}`)
  return [
    ['id', task.id],
    ['type', task.type],
    ['queue', task.queue],
    ...maybe('group', task.group === null ? null : printable(task.group)),
    ['status', statusText(task, now)],
    ['priority', String(task.priority)],
    ['attempts', String(task.attempts)],
    ['retry_count', `${task.retryCount}, max_retries: ${task.maxRetries ?? 'unlimited'}`],
    ['reschedule_count', `${task.rescheduleCount}, max_reschedules: ${task.maxReschedules ?? 'unlimited'}`],
    ...(task.replayCount === 0 ? [] : [['replay_count', String(task.replayCount)] as const]),
    ...maybe('replay_of', task.replayOf),
    ...maybe('replayed_as', task.replayedAs),
    ['created_at', when(task.createdAt)],
    [
      'available_at',
      isForSignalOnly(task, now) ? `when signal ${printable(task.parked!.signal!)} comes` : when(task.availableAt),
    ],
    ['expires_at', task.expiresAt === null ? 'never' : when(task.expiresAt)],
    ...at('expired_at', task.expiredAt),
    ...at('started_at', task.startedAt),
    ...at('completed_at', task.completedAt),
    ...at('cancel_requested_at', task.cancelRequestedAt),
    ...maybe('lease', lease === null ? null : `${printable(lease.workerId)} until ${when(lease.expiresAt)}`),
    ...maybe('idempotency_key', task.idempotencyKey === null ? null : printable(task.idempotencyKey)),
    ...maybe('schedule_id', task.scheduleId),
    ...maybe('tags', tags.length === 0 ? null : printable(tags.join(', '))),
    ...maybe(
      'last_error',
      lastError === null
        ? null
        : `${printable(headOf(lastError))} (attempt ${lastError.attempt}, ${when(lastError.at)})`,
    ),
    ...(lastError === null ? [] : errorTree(lastError).map((line) => ['', line] as const)),
    ...maybe('progress', task.progress === null ? null : payload(task.progress)),
    ['input', payload(task.input)],
    ...(task.status === 'completed' || task.output !== null ? [['output', payload(task.output)] as const] : []),
    ...maybe('output_error', task.outputError === null ? null : printable(task.outputError)),
    ...maybe('generation', task.generation === 0 ? null : String(task.generation)),
    ...(task.steps.length === 0 ? [] : [['steps', String(task.steps.length)] as const]),
    ...task.steps.map((step) => ['', stepText(step, when)] as const),
    ...(task.signals.length === 0 ? [] : [['signals', `${task.signals.length} untaken`] as const]),
    ...task.signals.map((signal) => ['', signalText(signal, when)] as const),
    ['revision', String(task.revision)],
  ]
}

/** Its date is the last one that a store can keep, which says nothing. */
const isForSignalOnly = (task: Task, now: Instant): boolean =>
  task.viewAt(now) === 'parked' && task.parked?.signal !== undefined && task.parked.until === null

type When = (at: Instant) => string

/** `charge: done at 2026-01-28T17:00:00Z (2h ago), value: {"receipt":7}` */
const stepText = ({ name, kind, status, at, until, signal, value, error }: ShownStep, when: When): string => {
  const end = until == null ? '' : ` until ${when(until)}`
  const what: Readonly<Record<ShownStep['status'], string>> = {
    done: `${kind === 'step' ? 'done' : 'over'} at ${when(kind === 'sleep' ? until! : at)}`,
    sleeping: `sleeps${end}`,
    waiting: `waits for signal ${signal}${end}`,
    'timed-out': `no signal came, timed out at ${when(at)}`,
    refused: `signal ${signal} refused: ${error}`,
  }
  return `${printable(`${name}: ${what[status]}`)}${valueText(value)}`
}

const valueText = (value: unknown): string => (value === undefined ? '' : `, value: ${payload(value, LONGEST_VALUE)}`)

const signalText = ({ name, id, at, by, value }: ShownSignal, when: When): string =>
  `${printable(`${name}: from ${by} at ${when(at)}, id: ${id}`)}${valueText(value)}`

/** The stored status, and the view if it says more: `pending (retrying)`. */
const statusText = (task: Task, now: Instant): string => {
  const view = task.viewAt(now)
  const text =
    task.status === 'archived'
      ? `archived (was ${task.archivedFrom})`
      : view === task.status
        ? view
        : `${task.status} (${view})`
  const style = statusStyle(view)
  return style === null ? text : paint(style, text)
}

const LONGEST_PAYLOAD = 2_000

const LONGEST_VALUE = 200

const payload = (value: unknown, longest = LONGEST_PAYLOAD): string =>
  value instanceof Uint8Array ? `${value.byteLength} bytes` : fitted(printable(JSON.stringify(value)), longest)
