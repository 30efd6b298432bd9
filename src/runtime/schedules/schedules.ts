/** The public API of schedules. Each call reads the schedule's document, changes it, and writes it unless another process wrote first. */

import { HoldfastError, isHoldfastError } from '../../core/errors.ts'
import type { Task } from '../../core/observe/task-view.ts'
import { slotsAfter } from '../../core/schedules/recurrence.ts'
import {
  checkScheduleId,
  checkTaskOptions,
  DEFAULT_POLICY,
  type DeletedSchedule,
  type ExactTiming,
  isDeleted,
  parsePolicy,
  parseTiming,
  recurrenceOf,
  Schedule,
  type ScheduledTaskOptions,
  type SchedulePolicy,
  type ScheduleRecord,
  type ScheduleTiming,
} from '../../core/schedules/schedule.ts'
import { SCHEDULE } from '../../core/storage/document-names.ts'
import { checkInteger } from '../../core/submission.ts'
import type { Instant } from '../../core/task.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { canonicalJson, encodePayload } from '../../core/values/payload.ts'
import type { Document } from '../../store/store.ts'
import { abortable, type CallOptions } from '../abortable.ts'
import {
  asDefinition,
  checkSchema,
  type InputFor,
  type TaskDefinition,
  type TypeOrDefinition,
  withDefaults,
} from '../definition.ts'
import { editDocument } from '../documents.ts'
import { newId } from '../ids.ts'
import { withPatience } from '../patience.ts'
import { newOp, type Session } from '../session.ts'
import type { Submitter } from '../submit/submitter.ts'
import type { Scheduler } from './scheduler.ts'
import { noSchedule, readSchedule, SlotRunner } from './slot-runner.ts'

/** A schedule: what it submits, and when. */
export type ScheduleOptions<T extends TypeOrDefinition = TypeOrDefinition> = ExactTiming & SchedulePlan<T>

interface SchedulePlan<T extends TypeOrDefinition> extends SchedulePolicy {
  /** A name that you choose, 1 to 128 characters. */
  readonly id: string
  readonly type: T
  readonly input: InputFor<T>
  /** Create it paused: it does not fire until it is resumed. */
  readonly paused?: boolean
}

/** Fields that are left out keep their value. Any of cron, every, mode, timezone replaces the whole timing. */
export interface ScheduleChanges extends ScheduleTiming, SchedulePolicy {
  /** The type of tasks from now on. */
  readonly type?: string | TaskDefinition
  /** Their input from now on. */
  readonly input?: unknown
}

const KNOWN: ReadonlySet<string> = new Set<keyof ScheduleOptions | keyof ScheduleTiming>([
  'id',
  'type',
  'input',
  'cron',
  'every',
  'mode',
  'timezone',
  'overlap',
  'catchUp',
  'options',
  'paused',
])
const FIXED: ReadonlySet<string> = new Set<keyof ScheduleOptions>(['id', 'paused'])
const CHANGEABLE: ReadonlySet<string> = new Set([...KNOWN].filter((name) => !FIXED.has(name)))

/** Creates, reads, changes and triggers schedules. */
export class Schedules {
  readonly #session: Session
  readonly #submitter: Submitter
  readonly #scheduler: Scheduler
  readonly #runner: SlotRunner

  constructor(session: Session, submitter: Submitter, scheduler: Scheduler) {
    this.#session = session
    this.#submitter = submitter
    this.#scheduler = scheduler
    this.#runner = new SlotRunner(session, submitter, newOp())
  }

  /** The schedule first fires at its first slot after now. ALREADY_EXISTS if the id is taken. */
  async create<const T extends TypeOrDefinition>(
    options: ScheduleOptions<T>,
    { signal }: CallOptions = {},
  ): Promise<Schedule> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.create(options))
    checkOptionNames(options, KNOWN, 'schedules.create')
    const id = checkScheduleId(options.id)
    const timing = parseTiming(options)
    const policy = parsePolicy(options, DEFAULT_POLICY)
    const work = await this.#work(options.type, options.input, options.options ?? {})
    const now = this.#session.time.now()
    const record: ScheduleRecord = {
      id,
      incarnation: newId(),
      ...work,
      ...timing,
      ...policy,
      paused: checkFlag(options.paused ?? false, 'paused'),
      origin: now,
      cursor: now,
      firing: null,
      lastTaskId: null,
      lastSkipped: null,
      createdAt: now,
      updatedAt: now,
    }
    await editDocument(this.#session, SCHEDULE + id, (text) => {
      const kept = text === null ? null : (JSON.parse(text) as ScheduleRecord | DeletedSchedule)
      if (kept === null || isDeleted(kept)) return JSON.stringify(record)
      // Written by an earlier try of this call whose reply was lost.
      if (kept.incarnation === record.incarnation) return text
      throw new HoldfastError('ALREADY_EXISTS', `a schedule '${id}' exists already: update it, or delete it first`, {
        id,
      })
    })
    return this.#changed(record)
  }

  /**
   * For start-up code: creates the schedule, or updates it to these options. An unchanged timing keeps its grid, so that a
   * daily job of a service that is deployed daily still fires. `paused` applies only on creation.
   */
  async ensure<const T extends TypeOrDefinition>(
    options: ScheduleOptions<T>,
    { signal }: CallOptions = {},
  ): Promise<Schedule> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.ensure(options))
    checkOptionNames(options, KNOWN, 'schedules.ensure')
    const { id, paused: _, ...changes } = options
    for (;;) {
      try {
        return await this.create(options)
      } catch (error) {
        if (!isHoldfastError(error, 'ALREADY_EXISTS')) throw error
      }
      try {
        return await this.update(id, { ...DEFAULT_POLICY, ...timingDefaults(changes), options: {}, ...changes })
      } catch (error) {
        // Deleted in between: create it again.
        if (!isHoldfastError(error, 'SCHEDULE_NOT_FOUND')) throw error
      }
    }
  }

  /** Slots that are already due fire by the old timing; later slots follow the new one. */
  update(id: string, changes: ScheduleChanges, { signal }: CallOptions = {}): Promise<Schedule> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.update(id, changes))
    const incarnation = newId()
    const change = async (record: ScheduleRecord, now: Instant): Promise<ScheduleRecord> => {
      checkOptionNames(changes, CHANGEABLE, 'schedules.update')
      const work = await this.#work(
        changes.type ?? record.type,
        'input' in changes ? changes.input : new Schedule(record, null).input,
        changes.options ?? record.options,
      )
      // An unchanged timing keeps its grid, because start-up code may update on every start.
      const wanted = newTiming(record, changes)
      const timing = wanted !== null && isSameTiming(wanted, record) ? null : wanted
      const policy = parsePolicy(changes, record)
      if (timing === null && isSameWork(work, record) && isSamePolicy(policy, record)) return record
      return {
        ...record,
        ...work,
        ...policy,
        // Only a new timing restarts the slots: an edited input must not move them.
        ...(timing === null ? null : { ...timing, origin: now, cursor: now }),
        incarnation,
        updatedAt: now,
      }
    }
    return this.#edit(id, change, (record) => record.incarnation === incarnation)
  }

  /** Ordered by id. */
  async list({ signal }: CallOptions = {}): Promise<Schedule[]> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.list())
    const documents = await withPatience(this.#session, () => this.#session.store.documents.list(SCHEDULE))
    const records = documents.map(readSchedule).filter((kept): kept is ScheduleRecord => !isDeleted(kept))
    return Promise.all(records.map((record) => this.#shown(record)))
  }

  /** SCHEDULE_NOT_FOUND if there is none. */
  async get(id: string, { signal }: CallOptions = {}): Promise<Schedule> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.get(id))
    return this.#shown((await this.#mustRead(id)).record)
  }

  /** An alias of `get`, named as on the command line. */
  show(id: string, options?: CallOptions): Promise<Schedule> {
    return this.get(id, options)
  }

  /** The next slots, even if the schedule is paused. For a fixed delay they assume that runs take no time. */
  async next(id: string, count = 1, { signal }: CallOptions = {}): Promise<Instant[]> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.next(id, count))
    const most = checkInteger(count, 'count', 1, 1_000)
    const { record } = await this.#mustRead(id)
    const now = this.#session.time.now()
    const end = (await this.#runner.lastEnd(record)) ?? now
    return slotsAfter(recurrenceOf(record, end), Math.max(record.cursor, now), most)
  }

  /** Slots that pass while it is paused are not caught up. Succeeds if it is already paused. */
  pause(id: string, { signal }: CallOptions = {}): Promise<Schedule> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.pause(id))
    return this.#edit(
      id,
      (record, now) => ({ ...record, paused: true, updatedAt: now }),
      ({ paused }) => paused,
    )
  }

  resume(id: string, { signal }: CallOptions = {}): Promise<Schedule> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.resume(id))
    return this.#edit(
      id,
      (record, now) => ({ ...record, paused: false, cursor: Math.max(record.cursor, now), updatedAt: now }),
      ({ paused }) => !paused,
    )
  }

  /** Submits one task now, regardless of pause and overlap. It counts as the schedule's last task. */
  async trigger(id: string, { signal }: CallOptions = {}): Promise<Task> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.trigger(id))
    const { record } = await this.#mustRead(id)
    mustBeHere(record)
    const [task] = await this.#runner.submit(record, [`schedule:${id}:${record.incarnation}:trigger:${newId()}`])
    try {
      await this.#edit(
        id,
        (before) => ({ ...before, lastTaskId: task!.id }),
        ({ lastTaskId }) => lastTaskId === task!.id,
      )
    } catch (error) {
      // The task exists: an error would make the caller trigger again.
      this.#session.logger.warn(
        `schedule '${id}' does not know that it was triggered: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
    return task!
  }

  /** Tasks that it has submitted stay. */
  async delete(id: string, { signal }: CallOptions = {}): Promise<void> {
    if (signal !== undefined) return this.#until(signal, (schedules) => schedules.delete(id))
    let isFound = false
    await this.#runner.change(checkScheduleId(id), (_, now) => {
      isFound = true
      return { deletedAt: now }
    })
    if (!isFound) throw noSchedule(id)
    this.#scheduler.nudge()
  }

  /** The same schedules, with a store that refuses every call once the signal has aborted. */
  #until<T>(signal: AbortSignal, work: (schedules: Schedules) => Promise<T>): Promise<T> {
    return abortable(this.#session, signal, (session) =>
      work(new Schedules(session, this.#submitter.beside(session), this.#scheduler)),
    )
  }

  async #edit(
    id: string,
    change: (record: ScheduleRecord, now: Instant) => ScheduleRecord | Promise<ScheduleRecord>,
    isDone: (record: ScheduleRecord) => boolean,
  ): Promise<Schedule> {
    const after = await this.#runner.change(checkScheduleId(id), (record, now) => {
      mustBeHere(record)
      return isDone(record) ? null : change(record, now)
    })
    if (after === null) throw noSchedule(id)
    return this.#changed(after)
  }

  async #mustRead(id: string): Promise<{ document: Document; record: ScheduleRecord }> {
    const document = await this.#read(checkScheduleId(id))
    const kept: ScheduleRecord | DeletedSchedule | null = document === null ? null : readSchedule(document)
    if (document === null || kept === null || isDeleted(kept)) throw noSchedule(id)
    return { document, record: kept }
  }

  #read(id: string): Promise<Document | null> {
    return withPatience(this.#session, () => this.#session.store.documents.get(SCHEDULE + id))
  }

  /** The type, input and options of every task of the schedule, checked as submit checks them. */
  async #work(type: string | TaskDefinition, input: unknown, options: ScheduledTaskOptions) {
    const definition = asDefinition(type)
    await checkSchema(definition.input, input, 'input', 'INVALID_TASK')
    const payload = encodePayload(input, 'input', this.#session.maxPayload)
    const { idempotencyTtl: _, onMismatch: __, ...defaults } = definition.options
    const merged = withDefaults({ ...definition, options: defaults }, options)
    return {
      type: definition.type,
      input: payload.text,
      encoding: payload.encoding,
      options: checkTaskOptions(definition.type, payload, merged),
    }
  }

  async #changed(record: ScheduleRecord): Promise<Schedule> {
    this.#scheduler.nudge()
    return this.#shown(record)
  }

  async #shown(record: ScheduleRecord): Promise<Schedule> {
    return new Schedule(record, await this.#runner.nextOf(record, this.#session.time.now()))
  }
}

const newTiming = (record: ScheduleRecord, changes: ScheduleChanges) => {
  const { cron, every, mode, timezone } = changes
  if (cron === undefined && every === undefined && mode === undefined && timezone === undefined) return null
  if (cron !== undefined || (every === undefined && record.cron !== null)) {
    const kept = timezone ?? record.timezone
    return parseTiming({
      cron: cron ?? record.cron!,
      ...(kept === null ? null : { timezone: kept }),
      ...(every === undefined ? null : { every }),
      ...(mode === undefined ? null : { mode }),
    })
  }
  const kept = mode ?? record.mode
  return parseTiming({
    every: every ?? { milliseconds: record.every! },
    ...(kept === null ? null : { mode: kept }),
    ...(timezone === undefined ? null : { timezone }),
  })
}

const checkFlag = (value: boolean, field: string): boolean => {
  if (typeof value === 'boolean') return value
  throw new HoldfastError('INVALID_OPTION', `${field} must be true or false`, { field })
}

/** An option that is left out has its default, not its previous value. */
const timingDefaults = ({ cron }: ScheduleTiming): ScheduleTiming =>
  cron === undefined ? { mode: 'fixed-rate' } : { timezone: 'UTC' }

type Timing = Pick<ScheduleRecord, 'cron' | 'timezone' | 'every' | 'mode'>
type Work = Pick<ScheduleRecord, 'type' | 'input' | 'encoding' | 'options'>
type Policy = Pick<ScheduleRecord, 'overlap' | 'catchUp'>

const isSameTiming = (a: Timing, b: Timing): boolean =>
  a.cron === b.cron && a.timezone === b.timezone && a.every === b.every && a.mode === b.mode

/** Ignores the order of keys. */
const isSameWork = (a: Work, b: Work): boolean =>
  a.type === b.type &&
  a.encoding === b.encoding &&
  isSameInput(a, b) &&
  canonicalJson(a.options) === canonicalJson(b.options)

const isSameInput = ({ input, encoding }: Work, other: Work): boolean =>
  input === other.input ||
  (encoding === 'json' && canonicalJson(JSON.parse(input)) === canonicalJson(JSON.parse(other.input)))

const isSamePolicy = (a: Policy, b: Policy): boolean => a.overlap === b.overlap && a.catchUp === b.catchUp

const mustBeHere = ({ id, moved }: ScheduleRecord): void => {
  if (moved !== undefined)
    throw new HoldfastError('SCHEDULE_MOVED', `schedule '${id}' was moved to ${moved.to}`, { id })
}
