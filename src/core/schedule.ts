/** A schedule: what to submit, when, and how far it has come. Kept as one document of the store. */
import { type Duration, parseDuration } from './durations.ts'
import { HoldfastError } from './errors.ts'
import { decodePayload, type Payload } from './payload.ts'
import { type CatchUp, checkCron, checkTimezone, type Recurrence } from './recurrence.ts'
import { checkName, newSubmission, type SubmitOptions } from './submission.ts'
import type { Encoding, Instant } from './task.ts'

export type ScheduleMode = 'fixed-rate' | 'fixed-delay'
export type Overlap = 'skip' | 'allow'

/** Options of every task that a schedule makes. A key, an id or an instant would be the same for all of them. */
export type ScheduledTaskOptions = Omit<
  SubmitOptions,
  'id' | 'idempotencyKey' | 'idempotencyTtl' | 'onMismatch' | 'at' | 'expiresAt'
>

export interface ScheduleTiming {
  /** Five fields (minute hour day month weekday), six with seconds first, or @daily and its like. Or: */
  readonly cron?: string
  readonly every?: Duration
  /** Of `every`: the original grid (default), or the end of the last run plus the interval. */
  readonly mode?: ScheduleMode
  /** Of `cron`: an IANA name. Default UTC. */
  readonly timezone?: string
}

export interface SchedulePolicy {
  /** While the last task that it made has not ended: the slot is dropped (default), or fires all the same. */
  readonly overlap?: Overlap
  /** Slots missed by 60 s or more: dropped (default), the newest fires at once, or up to 1,000 of them do. */
  readonly catchUp?: CatchUp
  readonly options?: ScheduledTaskOptions
}

/** A slot that made no task. `overlap`: because of this task, which had not ended; `missed`: nobody was there to fire it in time. */
export interface SkippedSlot {
  readonly slot: Instant
  readonly reason: 'overlap' | 'missed'
  readonly taskId?: string
}

export interface ScheduleRecord {
  readonly id: string
  /** New with every edit: a slot's task belongs to the schedule as it was then. */
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
  /** Where the grid of a fixed rate begins. */
  readonly origin: Instant
  /** Every slot up to it is settled: its task was made, or it was dropped. */
  readonly cursor: Instant
  /** Slots whose tasks are being submitted: written before, removed together with the move of the cursor after. */
  readonly firing: { readonly slots: readonly Instant[]; readonly by: string; readonly at: Instant } | null
  readonly lastTaskId: string | null
  readonly lastSkipped: SkippedSlot | null
  readonly createdAt: Instant
  readonly updatedAt: Instant
  /**
   * It goes on in another store, and is paused here for good. `paused`: whether it was before. `arrived`: it is there, or
   * was kept out by one that was there before.
   */
  readonly moved?: { readonly to: string; readonly paused: boolean; readonly arrived: boolean }
}

/** As it goes on in the other store. */
export const arrivedSchedule = ({ moved, ...record }: ScheduleRecord): ScheduleRecord =>
  moved === undefined ? record : { ...record, paused: moved.paused }

/** What stays of a deleted schedule for a day, so that whoever read it before cannot bring it back. */
export interface DeletedSchedule {
  readonly deletedAt: Instant
}

export const isDeleted = (kept: ScheduleRecord | DeletedSchedule): kept is DeletedSchedule => 'deletedAt' in kept

export const checkScheduleId = (id: string): string => checkName(id, 'id')

/** The reserved key of a slot: any number of schedulers make one task of it. */
export const slotKey = ({ id, incarnation }: ScheduleRecord, slot: Instant): string =>
  `schedule:${id}:${incarnation}:${new Date(slot).toISOString()}`

/** The slots of a schedule; those of a fixed delay begin where the last run ended. */
export const recurrenceOf = (record: ScheduleRecord, lastEnd: Instant): Recurrence => {
  if (record.cron !== null) return { cron: record.cron, timezone: record.timezone! }
  return { every: record.every!, origin: record.mode === 'fixed-delay' ? lastEnd : record.origin }
}

type Timing = Pick<ScheduleRecord, 'cron' | 'timezone' | 'every' | 'mode'>

/** Shorter ones keep the store busy with nothing else. */
const SHORTEST_INTERVAL = 10

export const parseTiming = ({ cron, every, mode, timezone }: ScheduleTiming): Timing => {
  if (cron !== undefined && every !== undefined)
    throw refused('cron', 'and every say the same thing twice: give one of them')
  if (cron !== undefined) {
    if (mode !== undefined) throw refused('mode', 'belongs to every, not to cron')
    return { cron: checkCron(cron), timezone: checkTimezone(timezone ?? 'UTC'), every: null, mode: null }
  }
  if (every === undefined) throw refused('cron', 'or every is required: say when')
  if (timezone !== undefined) throw refused('timezone', 'belongs to cron, not to every')
  const interval = parseDuration(every, 'every')
  if (interval < SHORTEST_INTERVAL) throw refused('every', `is ${interval} ms; the least is ${SHORTEST_INTERVAL} ms`)
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

const NOT_FOR_MANY = ['id', 'idempotencyKey', 'idempotencyTtl', 'onMismatch', 'at', 'expiresAt', 'tx'] as const

/** By building a task that is thrown away: what submit would refuse is refused before the first slot comes. */
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
  readonly id: string
  readonly incarnation: string
  readonly type: string
  readonly cron: string | null
  readonly timezone: string | null
  /** Milliseconds. */
  readonly every: number | null
  readonly mode: ScheduleMode | null
  readonly overlap: Overlap
  readonly catchUp: CatchUp
  readonly options: ScheduledTaskOptions
  readonly paused: boolean
  /** Every slot up to it is settled. */
  readonly cursor: Instant
  /** The next slot; null while it is paused, or waits for the end of a run. */
  readonly nextAt: Instant | null
  readonly lastTaskId: string | null
  readonly lastSkipped: ScheduleRecord['lastSkipped']
  readonly createdAt: Instant
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
    this.createdAt = record.createdAt
    this.updatedAt = record.updatedAt
  }

  get input(): unknown {
    return decodePayload(this.#record.input, this.#record.encoding)
  }

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
