/** Tasks as stored. One key holds a task and decides; it is written only from the mark that was read, and after its hint. */
import { HoldfastError } from '../../../core/errors.ts'
import type { TaskRecord } from '../../../core/task.ts'
import { isTerminal } from '../../../core/task.ts'
import type { Priority } from '../access/adaptive-concurrency.ts'
import type { Mark } from '../access/key-value.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import type { Discards } from '../cleanup/discards.ts'
import type { Hints } from '../hints/hints.ts'
import {
  corrupt,
  decodeTask,
  encodeLive,
  encodeTombstone,
  type LargeValues,
  type LiveBody,
  type TombstoneBody,
} from './bodies.ts'
import { endedHintFor, hintFor, parseHint } from './hint-names.ts'
import { LargeValueStore } from './large-values.ts'
import { taskKey } from './names.ts'
import { TaskCache } from './task-cache.ts'

/** A stored task with its large values in place. */
export interface LiveTask extends LiveBody {
  readonly mark: Mark
}

export interface Tombstone extends TombstoneBody {
  readonly mark: Mark
}

export type StoredTask = LiveTask | Tombstone

export const isLive = (stored: StoredTask | null): stored is LiveTask => stored !== null && 'task' in stored

export interface NewTask {
  readonly task: TaskRecord
  readonly largeValues: LargeValues
  /** The same in all processes that finish the insert of one idempotency key. */
  readonly insertId: string
  /** Monotonic: when the facts that this insert relies on were read. */
  readonly since: number
  /** The announced hint of a bundle; null: the task needs a hint of its own. */
  readonly hint: string | null
}

/** The index of ended tasks, as far as writing a task concerns it. */
export interface EndedTasks {
  /** This process ended the task. `hint` stays until the index has the task. */
  add(task: TaskRecord, hint: string): void
  /** A task that had ended is written again or removed. */
  remove(task: TaskRecord): void
  /** A hint of an ended task is still there. */
  sawHint(task: TaskRecord, hint: string): void
}

export interface WriteOptions {
  /** Goes before all other requests. */
  readonly isUrgent?: boolean
  /** The places that a claim has taken. Left out: those that the task had, while the same lease holds it. */
  readonly places?: readonly string[]
}

/** A place belongs to one lease. */
const placesKept = (before: LiveTask, { lease }: TaskRecord): readonly string[] =>
  lease !== null && lease.token === before.task.lease?.token ? before.places : []

/** A writer that was stopped for longer must start again: after twice this time, everything that it read may have been swept. */
const LONGEST_GAP = 300_000

export class Tasks {
  readonly cache = new TaskCache()
  readonly largeValues: LargeValueStore
  readonly #kv: RetryingKeyValue
  readonly #hints: Hints
  readonly #ended: EndedTasks | null

  /** `ended` is null where there is no index of ended tasks. */
  constructor(kv: RetryingKeyValue, discards: Discards, hints: Hints, ended: EndedTasks | null) {
    this.#kv = kv
    this.#hints = hints
    this.#ended = ended
    this.largeValues = new LargeValueStore(kv, discards)
  }

  /** Without the parts of its journal that have keys of their own. */
  async read(id: string, priority: Priority = 'last'): Promise<StoredTask | null> {
    for (let tries = 0; ; tries++) {
      const key = taskKey(id)
      const entry = await this.#kv.get(key, priority)
      if (entry === null) return null
      const { mark } = entry
      const body = decodeTask(key, entry.value)
      if (!('task' in body)) return { ...body, mark }
      const task = await this.largeValues.load(body)
      if (task !== null) return { ...body, task, mark }
      // Between the two reads another process may have written the task and discarded its old values.
      if (tries === 3) throw corrupt(key, 'has lost a large value')
    }
  }

  /** The task with its whole journal; null: it was removed meanwhile. */
  async withJournal(stored: LiveTask): Promise<TaskRecord | null> {
    let live = stored
    for (let tries = 0; ; tries++) {
      const journal = await this.largeValues.journalOf(live)
      if (journal !== null) return { ...live.task, journal }
      if (tries === 3) throw corrupt(taskKey(live.task.id), 'has lost a part of its journal')
      const again = await this.read(live.task.id)
      if (!isLive(again)) return null
      live = again
    }
  }

  /** Writes a new task, perhaps over a tombstone. null: the key has changed. */
  create(made: NewTask, tombstone: Tombstone | null = null): Promise<LiveTask | null> {
    return this.#put(tombstone, made)
  }

  /** Writes a task that was moved or renewed. null: another process wrote first. */
  async write(
    before: LiveTask,
    task: TaskRecord,
    { isUrgent = false, places }: WriteOptions = {},
  ): Promise<LiveTask | null> {
    const body = await this.largeValues.save(task, before)
    const made = { ...body, insertId: before.insertId, places: places ?? placesKept(before, task) }
    const after = await this.#put(before, made, isUrgent)
    if (after === null) await this.discardRefused(task.id, body.largeValues, before)
    else this.largeValues.discard(before.largeValues, after.largeValues)
    return after
  }

  /**
   * Discards the values of a refused write that its task does not use. Only the task tells: a write whose reply was lost may
   * have taken effect before another process wrote, and then what was written after it refers to its values. A task that does
   * not refer to them never will, because each write takes over values only from the one that it replaces.
   */
  async discardRefused(id: string, written: LargeValues, before: LiveTask | null = null): Promise<void> {
    const isNew = Object.entries(written).some(([name, { key }]) => before?.largeValues[name]?.key !== key)
    if (!isNew) return
    try {
      const key = taskKey(id)
      const entry = await this.#kv.get(key)
      // Read from a copy that is behind.
      if (before !== null && entry?.mark === before.mark) return
      const body = entry === null ? null : decodeTask(key, entry.value)
      const used = body !== null && 'task' in body ? body.largeValues : {}
      this.largeValues.discard(written, used)
    } catch {
      // Values that nothing refers to are harmless. Those of a task that cannot be read may be its own.
    }
  }

  async #put(
    before: StoredTask | null,
    made: Pick<LiveBody, 'task' | 'largeValues' | 'insertId'> &
      Partial<Pick<NewTask, 'since' | 'hint'> & Pick<LiveBody, 'places'>>,
    isUrgent = false,
  ): Promise<LiveTask | null> {
    const { task, largeValues, insertId, since, hint: bundled = null, places = [] } = made
    const { id } = task
    const sequence = (before?.sequence ?? 0) + 1
    const current = isLive(before) ? before.hint : null
    const hint = bundled ?? hintFor(task, sequence, current)
    // The hint comes first: a hint without a task is harmless, a task without a hint is lost.
    if (hint !== null && hint !== current && hint !== bundled) await this.#hints.announce(hint)
    const isEnd = this.#ended !== null && isTerminal(task.status)
    const endedHint = isEnd ? (current ?? endedHintFor(task, sequence)) : null
    if (endedHint !== null && endedHint !== current) await this.#hints.announce(endedHint, false)
    // A write whose hint is already out goes before writes that have not started.
    const priority = isUrgent ? 'urgent' : hint === current ? 'last' : 'next'
    if (since !== undefined && performance.now() - since > LONGEST_GAP)
      throw new HoldfastError('STORE_UNAVAILABLE', `${this.#kv.address}: this process was stopped while it was writing`)
    const body: LiveBody = { sequence, insertId, hint, places, task, largeValues }
    const mark = await this.#kv.put(taskKey(id), encodeLive(body), before?.mark ?? null, priority)
    if (mark === null) {
      this.cache.delete(id)
      return null
    }
    this.#removeFromIndex(before)
    if (endedHint !== null) this.#ended!.add(task, endedHint)
    else if (current !== null && current !== hint) this.#hints.withdraw([current])
    return { ...body, mark }
  }

  #removeFromIndex(before: StoredTask | null): void {
    if (isLive(before) && isTerminal(before.task.status)) this.#ended?.remove(before.task)
  }

  /** False: another process wrote first. */
  async replaceWithTombstone(
    before: StoredTask | null,
    id: string,
    body: Omit<TombstoneBody, 'sequence' | 'insertId'>,
  ): Promise<boolean> {
    const sequence = (before?.sequence ?? 0) + 1
    const text = encodeTombstone({ ...body, sequence, insertId: before?.insertId ?? null })
    this.cache.delete(id)
    if ((await this.#kv.put(taskKey(id), text, before?.mark ?? null)) === null) return false
    this.#removeFromIndex(before)
    if (isLive(before)) {
      if (before.hint !== null) this.#hints.withdraw([before.hint])
      this.largeValues.discard(before.largeValues)
    }
    return true
  }

  /** Writes the task unchanged, so that a writer that holds the old mark has to read it again. False: another process wrote first. */
  async touch(before: LiveTask): Promise<boolean> {
    const { mark, ...body } = before
    const { id } = before.task
    this.cache.delete(id)
    return (await this.#kv.update(taskKey(id), encodeLive({ ...body, sequence: body.sequence + 1 }), mark)) !== null
  }

  /** Withdraws a hint that the task does not name and can no longer name, because the write it was made for is decided. */
  withdrawIfObsolete(key: string, stored: StoredTask): boolean {
    const hint = parseHint(key)
    if (hint === null || hint.sequence > stored.sequence || (isLive(stored) && stored.hint === key)) return false
    if (this.#ended !== null && isLive(stored) && isTerminal(stored.task.status)) this.#ended.sawHint(stored.task, key)
    else this.#hints.withdraw([key])
    return true
  }
}
