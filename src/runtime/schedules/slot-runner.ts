/**
 * Brings one schedule up to date. It first writes which slots are about to fire, then submits their tasks under keys that
 * name the slots, then advances the cursor. A process that finds a schedule half done repeats the same steps.
 */

import { HoldfastError } from '../../core/errors.ts'
import type { Task } from '../../core/observe/task-view.ts'
import { dueSlots, slotAfter } from '../../core/schedules/recurrence.ts'
import {
  type DeletedSchedule,
  isDeleted,
  recurrenceOf,
  type ScheduleRecord,
  type SkippedSlot,
  slotKey,
  withPast,
} from '../../core/schedules/schedule.ts'
import { SCHEDULE } from '../../core/storage/document-names.ts'
import { type Instant, isTerminal, type TaskRecord } from '../../core/task.ts'
import { decodePayload } from '../../core/values/payload.ts'
import type { Document } from '../../store/store.ts'
import { asDefinition } from '../definition.ts'
import { putDocument, untilWritten } from '../documents.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'
import type { Submitter } from '../submit/submitter.ts'

/** How long another scheduler may be half done before this one takes over. Not needed for correctness: the keys prevent duplicates. */
const GRACE = 1_000
/** The most steps in one run, so that a schedule that is far behind does not delay the others. */
const MOST_STEPS = 50
/** How often a fixed delay checks whether its last run has ended. */
const LEAST_WAIT = 200
const MOST_WAIT = 2_000
/** How long the document of a deleted schedule is kept. After that no process holds an older version of it. */
const TOMBSTONE_LIFE = 86_400_000

/** The result of a change; null leaves the schedule as it is. */
type Changed = ScheduleRecord | DeletedSchedule | null

export interface Ran {
  /** The current document; null if there is no such schedule. */
  readonly document: Document | null
  /** When to look again; null: only after a change. */
  readonly next: Instant | null
}

type Step = { readonly wait: Instant | null } | { readonly set: Partial<ScheduleRecord> }

export const readSchedule = ({ value }: Document): ScheduleRecord | DeletedSchedule =>
  JSON.parse(value) as ScheduleRecord | DeletedSchedule

export class SlotRunner {
  readonly #session: Session
  readonly #submitter: Submitter
  /** Names the process that is firing the slot. */
  readonly #by: string

  constructor(session: Session, submitter: Submitter, by: string) {
    this.#session = session
    this.#submitter = submitter
    this.#by = by
  }

  /** Fires the slots that are due. `hasty` includes slots that another scheduler has just begun. */
  async run(start: Document, { hasty = false }: { readonly hasty?: boolean } = {}): Promise<Ran> {
    let document: Document | null = start
    for (let steps = 0; document !== null && steps < MOST_STEPS; steps++) {
      const kept = readSchedule(document)
      const now = this.#session.time.now()
      if (isDeleted(kept)) {
        if (now - kept.deletedAt > TOMBSTONE_LIFE)
          await this.#session.store.documents.delete(document.name, document.version)
        return { document: null, next: null }
      }
      const step: Step = kept.firing === null ? await this.#plan(kept, now) : await this.#fire(kept, now, hasty)
      if ('wait' in step) return { document, next: step.wait }
      document = await putDocument(this.#session, document, JSON.stringify({ ...kept, ...step.set }))
    }
    return { document, next: document === null ? null : this.#session.time.now() }
  }

  /** The time of the next slot, as far as it is known. */
  async nextOf(record: ScheduleRecord, now: Instant): Promise<Instant | null> {
    if (record.paused) return null
    const end = await this.lastEnd(record)
    return end === null ? null : slotAfter(recurrenceOf(record, end), Math.max(record.cursor, now))
  }

  /** When the last run ended, for schedules that depend on it; null if it has not ended. */
  async lastEnd(record: ScheduleRecord): Promise<Instant | null> {
    if (record.mode !== 'fixed-delay' || record.lastTaskId === null) return record.cursor
    if (record.lastEnd?.taskId === record.lastTaskId) return record.lastEnd.at
    const last = await this.#lastTask(record)
    // The task was removed when it ended, so all that is known is that it has ended by now.
    if (last === null) return this.#session.time.now()
    return isTerminal(last.status) ? (last.completedAt ?? record.cursor) : null
  }

  /**
   * Changes a schedule once no slot is half done, so that an edit neither loses nor duplicates a slot. `decide` returns null
   * to leave it as it is. Resolves with the schedule after the change; null if there is none.
   */
  async change(
    id: string,
    decide: (record: ScheduleRecord, now: Instant) => Changed | Promise<Changed>,
  ): Promise<ScheduleRecord | null> {
    const name = SCHEDULE + id
    let result: ScheduleRecord | null = null
    await untilWritten(`schedule '${id}'`, async () => {
      const found = await withPatience(this.#session, () => this.#session.store.documents.get(name))
      const document = found === null ? null : (await this.run(found, { hasty: true })).document
      const record = document === null ? null : readSchedule(document)
      if (document === null || record === null || isDeleted(record)) {
        result = null
        return true
      }
      if (record.firing !== null) return false
      const after = await decide(record, this.#session.time.now())
      result = after === null ? record : isDeleted(after) ? null : after
      if (after === null) return true
      const value = JSON.stringify(after)
      return (await putDocument(this.#session, document, value))?.value === value
    })
    return result
  }

  /** Returns the tasks of these slots, whether this process or another one submitted them. */
  async submit(record: ScheduleRecord, keys: readonly string[]): Promise<readonly Task[]> {
    const { id, type, options } = record
    const input = decodePayload(record.input, record.encoding)
    const results = await this.#submitter.many(
      keys.map((key) => ({
        definition: asDefinition(type),
        input,
        options,
        reserved: { key, scheduleId: id },
      })),
    )
    return results.map((result) => {
      if (result.ok) return result.task
      throw result.error
    })
  }

  async #fire(record: ScheduleRecord, now: Instant, hasty: boolean): Promise<Step> {
    const { slots, by, at } = record.firing!
    if (!hasty && by !== this.#by && Math.abs(now - at) < GRACE) return { wait: Math.min(at, now) + GRACE }
    const tasks = await this.submit(
      record,
      slots.map((slot) => slotKey(record, slot)),
    )
    const fired = slots.map((slot, i) => ({ slot, taskId: tasks[i]!.id }))
    const past = withPast(record.past, fired)
    return { set: { firing: null, cursor: slots.at(-1)!, lastTaskId: tasks.at(-1)!.id, past } }
  }

  async #plan(record: ScheduleRecord, now: Instant): Promise<Step> {
    if (record.paused) return { wait: null }
    const { cursor, overlap, mode, lastTaskId, lastEnd } = record
    const end = await this.lastEnd(record)
    if (end === null) return { wait: now + Math.min(Math.max(record.every!, LEAST_WAIT), MOST_WAIT) }
    // Stored, so that removing the task by retention does not shorten the gap.
    if (mode === 'fixed-delay' && lastTaskId !== null && lastEnd?.taskId !== lastTaskId)
      return { set: { lastEnd: { taskId: lastTaskId, at: end } } }
    const recurrence = recurrenceOf(record, end)
    // A fixed delay has at most one slot to catch up: the next one is measured from the end of its run.
    const catchUp = mode === 'fixed-delay' && record.catchUp === 'all' ? 'last' : record.catchUp
    const { fire, newest } = dueSlots(recurrence, catchUp, cursor, now)
    if (newest === null) return { wait: slotAfter(recurrence, cursor) }
    if (fire.length === 0) return skipped(record, { slot: newest, reason: 'missed' })
    if (overlap === 'skip' && mode !== 'fixed-delay') {
      const last = await this.#lastTask(record)
      if (last !== null && !isTerminal(last.status)) {
        // With catchUp 'all' the slots run one after another, and none is dropped.
        if (catchUp === 'all') return { wait: now + MOST_WAIT }
        return skipped(record, { slot: newest, reason: 'overlap', taskId: last.id })
      }
    }
    const slots = overlap === 'allow' && mode !== 'fixed-delay' ? fire : fire.slice(0, 1)
    return { set: { firing: { slots, by: this.#by, at: now } } }
  }

  async #lastTask({ lastTaskId }: ScheduleRecord): Promise<TaskRecord | null> {
    if (lastTaskId === null) return null
    const [task] = await withPatience(this.#session, () => this.#session.store.get([lastTaskId]))
    return task ?? null
  }
}

const skipped = ({ past }: ScheduleRecord, slot: SkippedSlot): Step => ({
  set: {
    cursor: slot.slot,
    lastSkipped: slot,
    past: withPast(past, [{ slot: slot.slot, reason: slot.reason }]),
  },
})

export const noSchedule = (id: string): HoldfastError =>
  new HoldfastError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}'`, { id })
