/**
 * Moves schedules one at a time. Each is first closed in the old store with no slot half done; then, once its last task has
 * been moved, it continues in the new store from the same cursor. No slot fires in both stores.
 */

import { arrivedSchedule, isDeleted, type ScheduleRecord } from '../../core/schedules/schedule.ts'
import { SCHEDULE } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import { hasDeparted } from '../../core/transfer/transfer.ts'
import type { Document } from '../../store/store.ts'
import { putDocument } from '../documents.ts'
import { withPatience } from '../patience.ts'
import { Queues } from '../queues/queues.ts'
import { readSchedule, SlotRunner } from '../schedules/slot-runner.ts'
import { newOp, type Session } from '../session.ts'
import { Submitter } from '../submit/submitter.ts'

export class MoveSchedules {
  readonly #from: Session
  readonly #to: Session
  readonly #startedAt: Instant
  readonly #runner: SlotRunner
  #moved = 0
  readonly #keptOut: string[] = []

  constructor(from: Session, to: Session, startedAt: Instant) {
    this.#from = from
    this.#to = to
    this.#startedAt = startedAt
    this.#runner = new SlotRunner(from, new Submitter(from, new Queues(from)), newOp())
  }

  /** How many continue in the new store, and the ids of those that it already had. */
  get report(): { readonly moved: number; readonly keptOut: readonly string[] } {
    return { moved: this.#moved, keptOut: this.#keptOut }
  }

  /** Fires what is due, then stops the schedules in the old store. */
  async close(): Promise<void> {
    for (const document of await this.#documents()) {
      const kept = readSchedule(document)
      if (!isDeleted(kept) && kept.moved === undefined) await this.#closeOne(document)
    }
  }

  async #closeOne({ name }: Document): Promise<void> {
    await this.#runner.change(name.slice(SCHEDULE.length), (kept) => {
      if (kept.moved !== undefined) return null
      return { ...kept, paused: true, moved: { to: this.#to.store.address, paused: kept.paused, arrived: false } }
    })
  }

  /** Opens the schedules in the new store. Returns how many still wait for their last task. Tasks that cannot be moved are not awaited. */
  async open(stuck: ReadonlySet<string>): Promise<number> {
    let waiting = 0
    for (const document of await this.#documents()) {
      const kept = readSchedule(document)
      if (isDeleted(kept) || kept.moved === undefined || kept.moved.arrived) continue
      if (!stuck.has(kept.lastTaskId ?? '') && (await this.#lastTaskIsHere(kept))) waiting++
      else await this.#openOne(document, { ...kept, moved: kept.moved })
    }
    return waiting
  }

  async #lastTaskIsHere({ lastTaskId }: ScheduleRecord): Promise<boolean> {
    if (lastTaskId === null) return false
    const [task] = await withPatience(this.#from, () => this.#from.store.get([lastTaskId]))
    return task !== null && task !== undefined && !hasDeparted(task)
  }

  async #openOne(
    document: Document,
    record: ScheduleRecord & { readonly moved: NonNullable<ScheduleRecord['moved']> },
  ): Promise<void> {
    const { documents } = this.#to.store
    const { name } = document
    const value = JSON.stringify(arrivedSchedule(record))
    const there = await withPatience(this.#to, () => documents.get(name))
    const isIn = there !== null && !this.#mayReplace(there)
    if (isIn && !isOf(there, record.incarnation)) this.#keptOut.push(record.id)
    else {
      if (!isIn) {
        const version = await withPatience(this.#to, () => documents.put(name, value, there?.version ?? 0))
        // Another process has just created one, or a reply was lost: the next try finds out.
        if (version === null) return this.#openOne(document, record)
      }
      this.#moved++
    }
    const arrived = { ...record, moved: { ...record.moved, arrived: true } }
    await putDocument(this.#from, document, JSON.stringify(arrived))
  }

  /** A remnant of an earlier move out of that store, or a schedule deleted there before this move began. */
  #mayReplace(there: Document): boolean {
    const kept = readSchedule(there)
    return isDeleted(kept) ? kept.deletedAt < this.#startedAt : kept.moved !== undefined
  }

  #documents(): Promise<readonly Document[]> {
    return withPatience(this.#from, () => this.#from.store.documents.list(SCHEDULE))
  }
}

const isOf = (document: Document, incarnation: string): boolean => {
  const kept = readSchedule(document)
  return !isDeleted(kept) && kept.incarnation === incarnation
}
