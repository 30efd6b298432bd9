/** Recurring work, as an application handles it: each call reads the schedule's document, changes it, and writes it if nobody else did. */
import { HoldfastError } from '../core/errors.ts'
import { encodePayload } from '../core/payload.ts'
import { slotsAfter } from '../core/recurrence.ts'
import {
  checkScheduleId,
  checkTaskOptions,
  DEFAULT_POLICY,
  type DeletedSchedule,
  isDeleted,
  parsePolicy,
  parseTiming,
  recurrenceOf,
  Schedule,
  type ScheduledTaskOptions,
  type SchedulePolicy,
  type ScheduleRecord,
  type ScheduleTiming,
} from '../core/schedule.ts'
import type { Task } from '../core/snapshot.ts'
import { checkInteger } from '../core/submission.ts'
import type { Instant } from '../core/task.ts'
import type { Document } from '../store/store.ts'
import { asDefinition, checkSchema, type TaskDefinition, withDefaults } from './definition.ts'
import { Firing, noSchedule, readSchedule, SCHEDULE } from './firing.ts'
import { newId } from './ids.ts'
import type { Scheduler } from './scheduler.ts'
import { newOp, type Session } from './session.ts'
import { withPatience } from './settle.ts'
import type { Submitter } from './submit.ts'

export interface ScheduleOptions extends ScheduleTiming, SchedulePolicy {
  /** A name of your own, 1 to 128 characters. */
  readonly id: string
  readonly type: string | TaskDefinition
  readonly input: unknown
  /** Made, but not to fire until it is resumed. */
  readonly paused?: boolean
}

/** What is left out stays as it is. Any of cron, every, mode, timezone makes the timing new. */
export interface ScheduleChanges extends ScheduleTiming, SchedulePolicy {
  readonly type?: string | TaskDefinition
  readonly input?: unknown
}

const KNOWN: ReadonlySet<string> = new Set<keyof ScheduleOptions>([
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
const TRIES = 20

export class Schedules {
  readonly #session: Session
  readonly #scheduler: Scheduler
  readonly #firing: Firing

  constructor(session: Session, submitter: Submitter, scheduler: Scheduler) {
    this.#session = session
    this.#scheduler = scheduler
    this.#firing = new Firing(session, submitter, newOp())
  }

  /** Fires for the first time at its first slot after now. ALREADY_EXISTS when there is one of this id. */
  async create(options: ScheduleOptions): Promise<Schedule> {
    checkNames(options, (name) => KNOWN.has(name))
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
    for (let tries = 0; tries < TRIES; tries++) {
      const found = await this.#read(id)
      const kept = found === null ? null : readSchedule(found)
      if (kept !== null && !isDeleted(kept)) {
        // Ours, and the reply was lost.
        if (kept.incarnation === record.incarnation) return this.#changed(kept)
        throw new HoldfastError('ALREADY_EXISTS', `a schedule '${id}' exists already: update it, or delete it first`, {
          id,
        })
      }
      const made = await this.#firing.put(found ?? { name: SCHEDULE + id, value: '', version: 0 }, record)
      if (made !== null && isOf(readSchedule(made), record.incarnation)) return this.#changed(record)
    }
    throw conflict(id)
  }

  /** What is due by the old plan still fires by the old plan; from now on the new one holds. */
  update(id: string, changes: ScheduleChanges): Promise<Schedule> {
    const incarnation = newId()
    const change = async (record: ScheduleRecord, now: Instant): Promise<ScheduleRecord> => {
      checkNames(changes, (name) => KNOWN.has(name) && !FIXED.has(name))
      const work = await this.#work(
        changes.type ?? record.type,
        'input' in changes ? changes.input : new Schedule(record, null).input,
        changes.options ?? record.options,
      )
      const timing = newTiming(record, changes)
      return {
        ...record,
        ...work,
        ...parsePolicy(changes, record),
        // Only a new plan begins anew: an edited input must not move the slots.
        ...(timing === null ? null : { ...timing, origin: now, cursor: now }),
        incarnation,
        updatedAt: now,
      }
    }
    return this.#edit(id, change, (record) => record.incarnation === incarnation)
  }

  /** By id. */
  async list(): Promise<Schedule[]> {
    const documents = await withPatience(this.#session, () => this.#session.store.documents.list(SCHEDULE))
    const records = documents.map(readSchedule).filter((kept): kept is ScheduleRecord => !isDeleted(kept))
    return Promise.all(records.map((record) => this.#shown(record)))
  }

  /** SCHEDULE_NOT_FOUND when there is none. */
  async get(id: string): Promise<Schedule> {
    return this.#shown((await this.#mustRead(id)).record)
  }

  /** Another name for `get`: the one of the command line. */
  show(id: string): Promise<Schedule> {
    return this.get(id)
  }

  /** The next slots, also of a paused schedule. Those of a fixed delay as if its runs took no time. */
  async next(id: string, count = 1): Promise<Instant[]> {
    const most = checkInteger(count, 'count', 1, 1_000)
    const { record } = await this.#mustRead(id)
    const now = this.#session.time.now()
    const end = (await this.#firing.lastEnd(record)) ?? now
    return slotsAfter(recurrenceOf(record, end), Math.max(record.cursor, now), most)
  }

  /** Slots that come while it is paused are not made up for. A paused one: success. */
  pause(id: string): Promise<Schedule> {
    return this.#edit(
      id,
      (record, now) => ({ ...record, paused: true, updatedAt: now }),
      ({ paused }) => paused,
    )
  }

  resume(id: string): Promise<Schedule> {
    return this.#edit(
      id,
      (record, now) => ({ ...record, paused: false, cursor: Math.max(record.cursor, now), updatedAt: now }),
      ({ paused }) => !paused,
    )
  }

  /** Makes one task now, paused or not, whatever the overlap. It counts as the last task that the schedule made. */
  async trigger(id: string): Promise<Task> {
    const { record } = await this.#mustRead(id)
    mustBeHere(record)
    const [task] = await this.#firing.submit(record, [`schedule:${id}:${record.incarnation}:trigger:${newId()}`])
    try {
      await this.#edit(
        id,
        (before) => ({ ...before, lastTaskId: task!.id }),
        ({ lastTaskId }) => lastTaskId === task!.id,
      )
    } catch (error) {
      // The task is made: an error would have the caller trigger again.
      this.#session.logger.warn(
        `schedule '${id}' does not know that it was triggered: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
    return task!
  }

  /** Tasks that it made stay. */
  async delete(id: string): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      const { document } = await this.#mustSettle(id)
      const after = await this.#firing.put(document, { deletedAt: this.#session.time.now() })
      if (after === null || isDeleted(readSchedule(after))) return this.#scheduler.nudge()
    }
    throw conflict(id)
  }

  /** On a document on which nothing is half-way: so that an edit swallows nothing and doubles nothing. */
  async #edit(
    id: string,
    change: (record: ScheduleRecord, now: Instant) => ScheduleRecord | Promise<ScheduleRecord>,
    isDone: (record: ScheduleRecord) => boolean,
  ): Promise<Schedule> {
    for (let tries = 0; tries < TRIES; tries++) {
      const { document, record } = await this.#mustSettle(id)
      mustBeHere(record)
      if (isDone(record)) return this.#changed(record)
      const after = await this.#firing.put(document, await change(record, this.#session.time.now()))
      if (after === null) throw noSchedule(id)
      const kept = readSchedule(after)
      if (!isDeleted(kept) && isDone(kept)) return this.#changed(kept)
    }
    throw conflict(id)
  }

  async #mustSettle(id: string): Promise<{ document: Document; record: ScheduleRecord }> {
    for (let tries = 0; tries < TRIES; tries++) {
      const { document } = await this.#firing.settle((await this.#mustRead(id)).document, { hasty: true })
      if (document === null) throw noSchedule(id)
      const kept = readSchedule(document)
      if (!isDeleted(kept) && kept.firing === null) return { document, record: kept }
    }
    throw conflict(id)
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

  /** Type, input and options as every task will get them, checked as submit would check them. */
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
    return new Schedule(record, await this.#firing.nextOf(record, this.#session.time.now()))
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

const isOf = (kept: ScheduleRecord | DeletedSchedule, incarnation: string): boolean =>
  !isDeleted(kept) && kept.incarnation === incarnation

const checkNames = (options: object, isKnown: (name: string) => boolean): void => {
  for (const name of Object.keys(options)) {
    if (!isKnown(name)) throw new HoldfastError('INVALID_OPTION', `${name} cannot be given here`, { field: name })
  }
}

const checkFlag = (value: boolean, field: string): boolean => {
  if (typeof value === 'boolean') return value
  throw new HoldfastError('INVALID_OPTION', `${field} must be true or false`, { field })
}

const mustBeHere = ({ id, moved }: ScheduleRecord): void => {
  if (moved !== undefined)
    throw new HoldfastError('SCHEDULE_MOVED', `schedule '${id}' was moved to ${moved.to}`, { id })
}

const conflict = (id: string): HoldfastError =>
  new HoldfastError('STORE_CONFLICT', `schedule '${id}' changed under every one of ${TRIES} tries`, { id })
