/**
 * One schedule's document brought up to date. What is about to fire is written down first, then its tasks are submitted
 * under keys that name the slots, then the cursor moves: a process that finds a schedule half done repeats the same steps.
 */
import { SCHEDULE } from '../../core/document-names.ts'
import { HoldfastError } from '../../core/errors.ts'
import { decodePayload } from '../../core/payload.ts'
import { dueSlots, slotAfter } from '../../core/recurrence.ts'
import { type DeletedSchedule, isDeleted, recurrenceOf, type ScheduleRecord, slotKey } from '../../core/schedule.ts'
import { type Instant, isTerminal, type TaskRecord } from '../../core/task.ts'
import type { Task } from '../../core/task-view.ts'
import type { Document } from '../../store/store.ts'
import { asDefinition } from '../definition.ts'
import { putDocument, untilWritten } from '../documents.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'
import type { Submitter } from '../submit/submitter.ts'

/** How long another scheduler may be half-way before it is taken for dead. Only a matter of tact: keys keep it single. */
const GRACE = 1_000
/** Steps in one go, so that a schedule that is far behind does not hold up the others. */
const MOST_STEPS = 50
/** How often to ask whether a run has ended on which a fixed delay waits. */
const LEAST_WAIT = 200
const MOST_WAIT = 2_000
/** How long the document of a deleted schedule stays: by then no process holds an older version of it. */
const TOMBSTONE_LIFE = 86_400_000

/** What `change` makes of a schedule; null: it stays as it is. */
type Changed = ScheduleRecord | DeletedSchedule | null

export interface Ran {
  /** As it stands now; null: there is no such schedule. */
  readonly document: Document | null
  /** When it is worth looking again; null: only after a change. */
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

  /** Fires what is due. `hasty`: also what another scheduler has begun this moment. */
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

  /** When the next slot comes, as far as that can be said. */
  async nextOf(record: ScheduleRecord, now: Instant): Promise<Instant | null> {
    if (record.paused) return null
    const end = await this.lastEnd(record)
    return end === null ? null : slotAfter(recurrenceOf(record, end), Math.max(record.cursor, now))
  }

  /** When the last run ended, where that matters; null: it has not. */
  async lastEnd(record: ScheduleRecord): Promise<Instant | null> {
    if (record.mode !== 'fixed-delay' || record.lastTaskId === null) return record.cursor
    if (record.lastEnd?.taskId === record.lastTaskId) return record.lastEnd.at
    const last = await this.#lastTask(record)
    // Removed as soon as it ended: the best that is known is that it has ended by now.
    if (last === null) return this.#session.time.now()
    return isTerminal(last.status) ? (last.completedAt ?? record.cursor) : null
  }

  /**
   * Changes a schedule on which no slot is half-way, so that an edit swallows nothing and doubles nothing. `decide` returns
   * null to leave it as it is. Resolves with the schedule as it is then; null: there is none.
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

  /** The tasks of these slots, created by this process or by the one that was first. */
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
    return { set: { firing: null, cursor: slots.at(-1)!, lastTaskId: tasks.at(-1)!.id } }
  }

  async #plan(record: ScheduleRecord, now: Instant): Promise<Step> {
    if (record.paused) return { wait: null }
    const { cursor, overlap, mode, lastTaskId, lastEnd } = record
    const end = await this.lastEnd(record)
    if (end === null) return { wait: now + Math.min(Math.max(record.every!, LEAST_WAIT), MOST_WAIT) }
    // Kept, so that retention cannot shorten the gap.
    if (mode === 'fixed-delay' && lastTaskId !== null && lastEnd?.taskId !== lastTaskId)
      return { set: { lastEnd: { taskId: lastTaskId, at: end } } }
    const recurrence = recurrenceOf(record, end)
    // After a fixed delay there is never more than one to make up for: the next is measured from its end.
    const catchUp = mode === 'fixed-delay' && record.catchUp === 'all' ? 'last' : record.catchUp
    const { fire, newest } = dueSlots(recurrence, catchUp, cursor, now)
    if (newest === null) return { wait: slotAfter(recurrence, cursor) }
    if (fire.length === 0) return { set: { cursor: newest, lastSkipped: { slot: newest, reason: 'missed' } } }
    if (overlap === 'skip' && mode !== 'fixed-delay') {
      const last = await this.#lastTask(record)
      if (last !== null && !isTerminal(last.status)) {
        // They run one after another, and none is dropped.
        if (catchUp === 'all') return { wait: now + MOST_WAIT }
        return { set: { cursor: newest, lastSkipped: { slot: newest, reason: 'overlap', taskId: last.id } } }
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

export const noSchedule = (id: string): HoldfastError =>
  new HoldfastError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}'`, { id })
