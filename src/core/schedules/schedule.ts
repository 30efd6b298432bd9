/** A schedule: what to submit, when, and its progress. Stored as one document. */

import { HoldfastError } from '../errors.ts'
import { checkName, newSubmission, type SubmitOptions } from '../submission.ts'
import type { Encoding, Instant } from '../task.ts'
import { type Duration, parseDuration } from '../values/durations.ts'
import { decodePayload, type Payload } from '../values/payload.ts'
import { type CatchUp, checkCron, checkTimezone, type Recurrence } from './recurrence.ts'

/** Whether slots are counted from the plan or from the end of the task before. */
export type ScheduleMode = 'fixed-rate' | 'fixed-delay'
/** What a slot does while the task of the slot before has not ended. */
export type Overlap = 'skip' | 'allow'

/** Options of every task of a schedule. Excludes key, id and instants, which would be the same for all of them. */
export type ScheduledTaskOptions = Omit<
  SubmitOptions,
  'id' | 'idempotencyKey' | 'idempotencyTtl' | 'onMismatch' | 'coalesce' | 'at' | 'expiresAt'
>

/** When a schedule fires: a cron expression, or a fixed interval. */
export interface ScheduleTiming {
  /** Five fields (minute hour day month weekday), six with seconds first, or @daily and similar. Or: */
  readonly cron?: string
  /** A fixed interval. */
  readonly every?: Duration
  /** For `every`: the original grid (default), or the end of the last run plus the interval. */
  readonly mode?: ScheduleMode
  /** For `cron`: an IANA name. Default UTC. */
  readonly timezone?: string
}

/** Exactly one of the two ways to say when. */
export type ExactTiming =
  | { readonly cron: string; readonly timezone?: string; readonly every?: never; readonly mode?: never }
  | { readonly every: Duration; readonly mode?: ScheduleMode; readonly cron?: never; readonly timezone?: never }

/** What a schedule does with missed slots and with overlaps. */
export interface SchedulePolicy {
  /** While the last task has not ended: the slot is dropped (default), or fires anyway. */
  readonly overlap?: Overlap
  /** Slots missed by 60 s or more: dropped (default), the newest fires at once, or up to 1,000 of them fire. */
  readonly catchUp?: CatchUp
  /** Options of the tasks that it creates: queue, priority, ttl, timeout and others. */
  readonly options?: ScheduledTaskOptions
}

/** A slot that created no task. `overlap`: this task had not ended; `missed`: no worker fired it in time. */
export interface SkippedSlot {
  /** When a task was due. */
  readonly slot: Instant
  /** Why none was created. */
  readonly reason: 'overlap' | 'missed'
  /** Of an overlap: the task that had not ended. */
  readonly taskId?: string
}

/** A slot that has passed, with what became of it: a task, or the reason why there is none. */
export interface PastSlot {
  /** When a task was due. */
  readonly slot: Instant
  /** The task that was created, or the one that had not ended. */
  readonly taskId?: string
  /** Why none was created; absent if one was. */
  readonly reason?: SkippedSlot['reason']
}

/** More would make a document that is written with each slot long. */
const MOST_PAST = 20

/** The past slots of a schedule with these after them, oldest first. Records of an earlier build have none. */
export const withPast = (past: readonly PastSlot[] | undefined, slots: readonly PastSlot[]): readonly PastSlot[] =>
  [...(past ?? []), ...slots].slice(-MOST_PAST)

export interface ScheduleRecord {
  readonly id: string
  /** New with every update: the task of a slot belongs to the schedule as it was then. */
  readonly incarnation: string
  readonly type: string
  readonly input: string
  readonly encoding: Encoding
  readonly cron: string | null
  readonly timezone: string | null
  readonly every: number | null
  readonly mode: ScheduleMode | null
  readonly overlap: Overlap
  readonly catchUp: CatchUp
  readonly options: ScheduledTaskOptions
  readonly paused: boolean
  /** The origin of the grid of a fixed rate. */
  readonly origin: Instant
  /** Every slot up to it is handled: its task was created, or it was dropped. */
  readonly cursor: Instant
  /** Slots whose tasks are being submitted: written before, and removed when the cursor advances. */
  readonly firing: { readonly slots: readonly Instant[]; readonly by: string; readonly at: Instant } | null
  readonly lastTaskId: string | null
  /** When the last task of a fixed delay ended, once known. */
  readonly lastEnd?: { readonly taskId: string; readonly at: Instant }
  readonly lastSkipped: SkippedSlot | null
  readonly past?: readonly PastSlot[]
  readonly createdAt: Instant
  readonly updatedAt: Instant
  /**
   * It continues in another store and is permanently paused here. `paused`: whether it was paused before. `arrived`: it exists there,
   * or an existing schedule was kept instead.
   */
  readonly moved?: { readonly to: string; readonly paused: boolean; readonly arrived: boolean }
}

/** The schedule as it continues in the other store. */
export const arrivedSchedule = ({ moved, ...record }: ScheduleRecord): ScheduleRecord =>
  moved === undefined ? record : { ...record, paused: moved.paused }

/** The tombstone of a deleted schedule, kept for a day so that a process with an old copy cannot restore it. */
export interface DeletedSchedule {
  readonly deletedAt: Instant
}

export const isDeleted = (kept: ScheduleRecord | DeletedSchedule): kept is DeletedSchedule => 'deletedAt' in kept

export const checkScheduleId = (id: string): string => checkName(id, 'id')

/** The reserved key of a slot: however many schedulers submit it, it creates one task. */
export const slotKey = ({ id, incarnation }: ScheduleRecord, slot: Instant): string =>
  `schedule:${id}:${incarnation}:${new Date(slot).toISOString()}`

/** The slots of a schedule; those of a fixed delay begin where the last run ended. */
export const recurrenceOf = (record: ScheduleRecord, lastEnd: Instant): Recurrence => {
  if (record.cron !== null) return { cron: record.cron, timezone: record.timezone! }
  return { every: record.every!, origin: record.mode === 'fixed-delay' ? lastEnd : record.origin }
}

type Timing = Pick<ScheduleRecord, 'cron' | 'timezone' | 'every' | 'mode'>

/** Shorter intervals would overload the store. */
const SHORTEST_INTERVAL = 10

export const parseTiming = ({ cron, every, mode, timezone }: ScheduleTiming): Timing => {
  if (cron !== undefined && every !== undefined) throw refused('cron', 'and every cannot be combined: give one of them')
  if (cron !== undefined) {
    if (mode !== undefined) throw refused('mode', 'belongs to every, not to cron')
    return { cron: checkCron(cron), timezone: checkTimezone(timezone ?? 'UTC'), every: null, mode: null }
  }
  if (every === undefined) throw refused('cron', 'or every is required: say when')
  if (timezone !== undefined) throw refused('timezone', 'belongs to cron, not to every')
  const interval = parseDuration(every, 'every')
  if (interval < SHORTEST_INTERVAL) throw refused('every', `is ${interval} ms; the minimum is ${SHORTEST_INTERVAL} ms`)
  return {
    cron: null,
    timezone: null,
    every: interval,
    mode: oneOf<ScheduleMode>(mode ?? 'fixed-rate', 'mode', ['fixed-rate', 'fixed-delay']),
  }
}

type Policy = Pick<ScheduleRecord, 'overlap' | 'catchUp'>

export const parsePolicy = ({ overlap, catchUp }: SchedulePolicy, before: Policy): Policy => ({
  overlap: oneOf(overlap ?? before.overlap, 'overlap', ['skip', 'allow']),
  catchUp: oneOf(catchUp ?? before.catchUp, 'catchUp', ['skip', 'last', 'all']),
})

export const DEFAULT_POLICY: Policy = { overlap: 'skip', catchUp: 'skip' }

const NOT_FOR_MANY = [
  'id',
  'idempotencyKey',
  'idempotencyTtl',
  'onMismatch',
  'coalesce',
  'at',
  'expiresAt',
  'tx',
] as const

/** Validates by building a task and discarding it, so that errors appear before the first slot. */
export const checkTaskOptions = (type: string, input: Payload, options: ScheduledTaskOptions): ScheduledTaskOptions => {
  if (typeof options !== 'object' || options === null) throw refused('options', 'must be an object')
  for (const name of NOT_FOR_MANY) {
    if (name in options) throw refused(`options.${name}`, 'belongs to one task, and a schedule makes many')
  }
  newSubmission(type, input, options, { now: 0, id: '', op: '', by: '' })
  return JSON.parse(JSON.stringify(options)) as ScheduledTaskOptions
}

/** A schedule as an application sees it, at one moment. Instants are milliseconds here and ISO 8601 in JSON. */
export class Schedule {
  /** The name that it was created with. */
  readonly id: string
  /** Different after every change: the task of a slot belongs to the schedule as it was then. */
  readonly incarnation: string
  /** The type of its tasks. */
  readonly type: string
  /** The expression; null for an interval. */
  readonly cron: string | null
  /** The IANA name for `cron`; null for an interval. */
  readonly timezone: string | null
  /** Milliseconds. */
  readonly every: number | null
  /** Of an interval: 'fixed-rate' or 'fixed-delay'; null for `cron`. */
  readonly mode: ScheduleMode | null
  /** What happens while its last task has not ended. */
  readonly overlap: Overlap
  /** What happens to slots that were missed. */
  readonly catchUp: CatchUp
  /** Options of its tasks. */
  readonly options: ScheduledTaskOptions
  /** A paused schedule does not fire. */
  readonly paused: boolean
  /** Every slot up to it is handled. */
  readonly cursor: Instant
  /** The next slot; null while it is paused, or waits for the end of a run. */
  readonly nextAt: Instant | null
  /** The task of the last slot that fired; null before the first. */
  readonly lastTaskId: string | null
  /** The last slot that created no task, and why; null if there is none. */
  readonly lastSkipped: ScheduleRecord['lastSkipped']
  /** The last 20 slots that have passed, the oldest first. */
  readonly past: readonly PastSlot[]
  /** When it was created. */
  readonly createdAt: Instant
  /** When it was last changed, paused or resumed. */
  readonly updatedAt: Instant
  readonly #record: ScheduleRecord

  constructor(record: ScheduleRecord, nextAt: Instant | null) {
    this.#record = record
    this.id = record.id
    this.incarnation = record.incarnation
    this.type = record.type
    this.cron = record.cron
    this.timezone = record.timezone
    this.every = record.every
    this.mode = record.mode
    this.overlap = record.overlap
    this.catchUp = record.catchUp
    this.options = record.options
    this.paused = record.paused
    this.cursor = record.cursor
    this.nextAt = nextAt
    this.lastTaskId = record.lastTaskId
    this.lastSkipped = record.lastSkipped
    this.past = record.past ?? []
    this.createdAt = record.createdAt
    this.updatedAt = record.updatedAt
  }

  /** The input of its tasks. */
  get input(): unknown {
    return decodePayload(this.#record.input, this.#record.encoding)
  }

  /** Instants as ISO 8601. */
  toJSON(): Record<string, unknown> {
    const iso = (at: Instant | null): string | null => (at === null ? null : new Date(at).toISOString())
    const { encoding, input } = this.#record
    return {
      ...(this as object),
      input: encoding === 'base64' ? input : this.input,
      encoding,
      cursor: iso(this.cursor),
      nextAt: iso(this.nextAt),
      lastSkipped: this.lastSkipped && { ...this.lastSkipped, slot: iso(this.lastSkipped.slot) },
      past: this.past.map((one) => ({ ...one, slot: iso(one.slot) })),
      createdAt: iso(this.createdAt),
      updatedAt: iso(this.updatedAt),
    }
  }
}

const oneOf = <Word extends string>(value: Word, field: string, words: readonly Word[]): Word => {
  if (words.includes(value)) return value
  throw refused(field, `must be ${words.map((word) => `'${word}'`).join(' or ')}`)
}

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
