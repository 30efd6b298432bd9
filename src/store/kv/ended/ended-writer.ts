/**
 * Adds ended tasks to the index, many in one write. A task keeps its hint until the segment with its entry is durable. So any
 * process that finds the hint of an ended task can add the entry, and no crash loses it.
 */
import type { Instant, TaskRecord } from '../../../core/task.ts'
import type { Timers } from '../access/timers.ts'
import type { EndedTasks } from '../records/tasks.ts'
import { groupForSegments } from './group-for-segments.ts'
import { MERGE_AGE } from './merge-segments.ts'
import { type IndexedTask, identityOf, indexedTask } from './segment-names.ts'
import { MOST_ENTRIES, type Occurrences, type Segments } from './segments.ts'

/** How long an entry waits for others to share its segment. Failed tasks are looked up sooner. */
const WAIT = 5_000
const FAILED_WAIT = 1_000
/** With this many entries a segment is written at once. More would leave too many hints for other workers to list. */
const ENOUGH = 50
/** After this time the process that ended a task has added its entry and withdrawn its hint, or has died. */
const GRACE = 30_000
/** After this time another process may have added the entry, so the index is checked first. */
const DOUBT = 15_000
const MOST_SEEN = 20_000

interface Waiting {
  readonly entry: IndexedTask
  /** Withdrawn once the entry is durable. After a crash there may be several. */
  readonly hints: readonly string[]
  readonly since: number
  /** This process ended the task, so no other process has added it, and any later move will remove it. */
  readonly isOwn: boolean
  /** The entry may already be in the index. */
  readonly isDoubtful: boolean
}

/** Seen while the process responsible may still be about to write. */
interface Seen {
  readonly entry: IndexedTask
  readonly since: number
}

export interface EndedWriterParts {
  readonly segments: Segments
  readonly timers: Timers
  withdraw(hints: readonly string[]): void
  /** The time by the store's clock. */
  now(): Promise<Instant>
  /** null: the task was removed. */
  read(id: string): Promise<TaskRecord | null>
}

export class EndedWriter implements EndedTasks {
  readonly #segments: Segments
  readonly #timers: Timers
  readonly #withdraw: EndedWriterParts['withdraw']
  readonly #read: EndedWriterParts['read']
  readonly #now: EndedWriterParts['now']
  /** By identity: entries that wait to be written. */
  readonly #added = new Map<string, Waiting>()
  #removed: IndexedTask[] = []
  /** Hints of tasks whose entries wait or are being written. */
  readonly #hints = new Set<string>()
  /** By hint: tasks that other processes ended. */
  readonly #seenHints = new Map<string, Seen>()
  /** By identity: entries that no longer match their task. */
  readonly #stale = new Map<string, Seen>()
  /** Tasks that left the status before their entry was written: there is nothing to subtract. */
  readonly #neverAdded = new Set<string>()
  #running: Promise<void> | null = null
  #cancel: (() => void) | null = null
  #dueAt = Number.POSITIVE_INFINITY

  constructor({ segments, timers, withdraw, read, now }: EndedWriterParts) {
    this.#read = read
    this.#now = now
    this.#segments = segments
    this.#timers = timers
    this.#withdraw = withdraw
  }

  add(task: TaskRecord, hint: string): void {
    this.#wait({ entry: indexedTask(task), hints: [hint], since: this.#timers.mono(), isOwn: true, isDoubtful: false })
  }

  #wait(waiting: Waiting): void {
    const same = this.#added.get(identityOf(waiting.entry))
    const hints = [...(same?.hints ?? []), ...waiting.hints]
    this.#added.set(identityOf(waiting.entry), { ...(same ?? waiting), hints })
    for (const hint of waiting.hints) this.#hints.add(hint)
    this.#schedule(waiting.entry.status === 'failed' ? FAILED_WAIT : WAIT)
  }

  /** `task` is the record from before the move, with its ended status. */
  remove(task: TaskRecord): void {
    this.#remove(indexedTask(task))
  }

  #remove(entry: IndexedTask): void {
    const waiting = this.#added.get(identityOf(entry))
    if (waiting !== undefined && !this.#isDoubtful(waiting)) {
      this.#added.delete(identityOf(entry))
      this.#withdrawHints([waiting])
      return
    }
    this.#removed.push(entry)
    this.#schedule(WAIT)
  }

  /** Entries whose tasks have left the status, which the index does not show yet. */
  noticeStale(entries: readonly IndexedTask[]): void {
    for (const entry of entries) {
      const seen = this.#stale.get(identityOf(entry))
      if (seen === undefined) this.#remember(this.#stale, identityOf(entry), entry)
      else if (this.#isOver(seen)) {
        this.#stale.delete(identityOf(entry))
        this.#remove(entry)
      }
    }
  }

  /** The process that ended the task is about to withdraw the hint, unless it has died. */
  sawHint(task: TaskRecord, hint: string): void {
    if (!this.has(hint)) this.#remember(this.#seenHints, hint, indexedTask(task))
  }

  #remember(map: Map<string, Seen>, name: string, entry: IndexedTask): void {
    map.set(name, { entry, since: this.#timers.mono() })
    if (map.size > MOST_SEEN) map.delete(map.keys().next().value!)
  }

  #isOver({ since }: Seen): boolean {
    return this.#timers.mono() - since >= GRACE
  }

  /**
   * Whether the task of this listed hint has ended, so that it need not be read. A hint that stays too long is cleaned up
   * here.
   */
  has(hint: string): boolean {
    if (this.#hints.has(hint)) return true
    const seen = this.#seenHints.get(hint)
    if (seen === undefined) return false
    if (this.#isOver(seen)) {
      this.#seenHints.delete(hint)
      this.#wait({ entry: seen.entry, hints: [hint], since: seen.since, isOwn: false, isDoubtful: true })
    }
    return true
  }

  #schedule(delay: number): void {
    if (this.#added.size >= ENOUGH || this.#removed.length >= MOST_ENTRIES) void this.flush().catch(() => {})
    else this.#flushIn(delay)
  }

  #flushIn(delay: number): void {
    const dueAt = this.#timers.mono() + delay
    if (this.#cancel !== null && this.#dueAt <= dueAt) return
    this.#cancel?.()
    this.#dueAt = dueAt
    // If the process exits first, another process adds the entries.
    this.#cancel = this.#timers.after(delay, () => {
      this.#cancel = null
      void this.flush().catch(() => {})
    })
  }

  /** Everything that waits now is durable when this resolves. */
  async flush(): Promise<void> {
    while (this.#running !== null) await this.#running
    if (this.#added.size === 0 && this.#removed.length === 0) return
    this.#running = this.#write().finally(() => {
      this.#running = null
      if (this.#added.size > 0 || this.#removed.length > 0) this.#flushIn(WAIT)
    })
    await this.#running
  }

  async #write(): Promise<void> {
    const waiting = [...this.#added.values()]
    const removed = this.#removed
    this.#added.clear()
    this.#removed = []
    try {
      await this.#add(waiting)
    } catch (error) {
      this.#removed.push(...removed)
      throw error
    }
    await this.#subtract(removed.filter((entry) => !this.#neverAdded.delete(identityOf(entry))))
    this.#neverAdded.clear()
  }

  async #add(waiting: readonly Waiting[]): Promise<void> {
    const missing = await this.#missingOf(waiting)
    if (missing.length === 0) return
    await allOf(
      groupForSegments(missing, ({ entry }) => entry, await this.#now()),
      async (group) => {
        try {
          await this.#segments.write(
            'added',
            group.map(({ entry }) => entry),
          )
          this.#withdrawHints(group)
        } catch (error) {
          this.#waitAgain(group)
          throw error
        }
      },
    )
  }

  /** Entries that the index lacks. The hints of the others are withdrawn. */
  async #missingOf(waiting: readonly Waiting[]): Promise<readonly Waiting[]> {
    const doubtful = waiting.filter((one) => this.#isDoubtful(one))
    if (doubtful.length === 0) return waiting
    try {
      const entries = doubtful.map(({ entry }) => entry)
      const occurrences = await this.#segments.occurrences(await this.#segments.names(), entries)
      const isMissing = await Promise.all(doubtful.map((one, i) => this.#isMissing(one, occurrences[i]!)))
      this.#withdrawHints(doubtful.filter((_, i) => !isMissing[i]))
      for (const [i, entry] of entries.entries())
        if (!isMissing[i] && occurrences[i]!.added === 0) this.#neverAdded.add(identityOf(entry))
      const missing = new Set(doubtful.filter((_, i) => isMissing[i]))
      return waiting.filter((one) => missing.has(one) || !doubtful.includes(one))
    } catch (error) {
      this.#waitAgain(waiting)
      throw error
    }
  }

  #isDoubtful({ isDoubtful, since }: Waiting): boolean {
    return isDoubtful || this.#timers.mono() - since > DOUBT
  }

  /** Whether to add the entry. A task that has moved on is added if its removal is subtracted as well. */
  async #isMissing({ entry, isOwn, since }: Waiting, { added, removed }: Occurrences): Promise<boolean> {
    if (added > removed) return false
    // A merge drops a removal that matches no entry. This may have happened if this process was stopped for long.
    const willBeSubtracted = removed > 0 || (isOwn && this.#timers.mono() - since < MERGE_AGE / 2)
    if (added === 0 && willBeSubtracted) return true
    const task = await this.#read(entry.id)
    return task !== null && task.status === entry.status && task.revision === entry.revision
  }

  #withdrawHints(waiting: readonly Waiting[]): void {
    const hints = waiting.flatMap((one) => one.hints)
    this.#withdraw(hints)
    for (const hint of hints) this.#hints.delete(hint)
  }

  /** For writes that may or may not have taken effect. */
  #waitAgain(waiting: readonly Waiting[]): void {
    for (const one of waiting) {
      const hints = [...(this.#added.get(identityOf(one.entry))?.hints ?? []), ...one.hints]
      this.#added.set(identityOf(one.entry), { ...one, hints, isDoubtful: true })
    }
  }

  async #subtract(removed: readonly IndexedTask[]): Promise<void> {
    if (removed.length === 0) return
    const { names, rest } = this.#segments.emptied(removed, (await this.#now()) - MERGE_AGE / 2)
    // A deleted segment and a fully subtracted one give the same counts.
    await this.#segments.delete(names).catch((error: unknown) => {
      this.#removed.push(...removed)
      throw error
    })
    await allOf(
      groupForSegments(rest, (entry) => entry, Number.POSITIVE_INFINITY),
      async (group) => {
        try {
          await this.#segments.write('removed', group)
        } catch (error) {
          this.#removed.push(...group)
          throw error
        }
      },
    )
  }

  async close(): Promise<void> {
    await this.flush().catch(() => {})
    this.#cancel?.()
  }
}

/** Runs all calls, also if some fail, then throws the first error. */
const allOf = async <T>(items: readonly T[], one: (item: T) => Promise<void>): Promise<void> => {
  const outcomes = await Promise.allSettled(items.map(one))
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}
