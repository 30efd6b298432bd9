/** The names of queues and their pauses, both stored as documents. */

import { HoldfastError } from '../../core/errors.ts'
import type { LimitOptions } from '../../core/flow/limits.ts'
import { endOf, isInForce, type Pause, readPause, strongerPause } from '../../core/flow/pause.ts'
import { PAUSE, QUEUE } from '../../core/storage/document-names.ts'
import { checkGroup, checkName, type InstantInput, parseInstant } from '../../core/submission.ts'
import type { Instant } from '../../core/task.ts'
import { nearest } from '../../core/values/option-names.ts'
import type { Document } from '../../store/store.ts'
import { editDocument } from '../documents.ts'
import { type Patience, withPatience } from '../patience.ts'
import type { Session } from '../session.ts'
import { LimitedLooks } from './limited-look.ts'
import { Limits } from './limits.ts'

/** How long and why a queue, or one group of it, is paused. */
export interface PauseOptions {
  /** Shown to others with the pause, for example in the dashboard. */
  readonly reason?: string
  /** When the pause ends by itself. Default: the queue must be resumed. */
  readonly until?: InstantInput
  /** Only the tasks of this group. */
  readonly group?: string
}

/** Which group is resumed, and whether another's pause is lifted. */
export interface ResumeOptions {
  /** Also while a move holds the queue paused: tasks may then run here and where they came from. */
  readonly force?: boolean
  /** Only the pause of this group; a pause of the whole queue stays. */
  readonly group?: string
}

/** The document of a pause is removed this long after the pause has ended. */
const SWEPT_AFTER = 60_000

export class Queues {
  readonly #session: Session
  readonly #known = new Set<string>()
  readonly #listeners = new Set<() => void>()
  #pauses: ReadonlyMap<string, Pause> = new Map()
  /** The paused queues as last reported to the listeners. */
  #paused: ReadonlySet<string> = new Set()
  #refreshedAt = Number.NEGATIVE_INFINITY
  readonly limits: Limits
  /** Looks at queues within their limits. */
  readonly looks: LimitedLooks

  constructor(session: Session) {
    this.#session = session
    this.limits = new Limits(session)
    this.looks = new LimitedLooks(session, this.limits)
  }

  /** False for a call with a signal or under another name, which has a session of its own. */
  isOf(session: Session): boolean {
    return session === this.#session
  }

  /**
   * Stores the name on first use by this process, so that a queue is listed even when it is empty. Never rejects: a submit
   * must not fail because of it, and the next submit tries again.
   */
  async know(queue: string): Promise<void> {
    if (this.#known.has(queue)) return
    this.#known.add(queue)
    try {
      await withPatience(this.#session, () => this.#session.store.documents.put(QUEUE + queue, '{}', 0))
    } catch {
      this.#known.delete(queue)
    }
  }

  async names(): Promise<readonly string[]> {
    const documents = await this.#session.store.documents.list(QUEUE)
    return documents.map(({ name }) => name.slice(QUEUE.length))
  }

  /** Removes the queue from the list until a process that has not used it before submits to it. Its tasks, if any, stay. */
  async forget(queue: string): Promise<void> {
    const name = QUEUE + checkName(queue, 'queue')
    this.#known.delete(queue)
    const { documents } = this.#session.store
    await withPatience(this.#session, async () => {
      const document = await documents.get(name)
      // A conflict means that another process has just used the queue: then it stays listed.
      if (document !== null) await documents.delete(name, document.version)
    })
  }

  /** A queue that a move has paused stays paused after the move. */
  async pause(queue: string, { reason, until, group }: PauseOptions = {}): Promise<void> {
    const now = this.#session.time.now()
    const wanted: Pause = {
      at: new Date(now).toISOString(),
      by: this.#session.name,
      ...(reason === undefined ? null : { reason }),
      ...(until === undefined ? null : { until: new Date(parseInstant(until, 'until')).toISOString() }),
    }
    if (group !== undefined) {
      await this.tellIfUnknown(queue, 'paused')
      return this.#changeGroup(queue, checkGroup(group), wanted)
    }
    // Takes effect in this process at once: no further task starts while the pause is being written.
    this.#set(new Map(this.#pauses).set(queue, strongerPause(this.#pauses.get(queue) ?? null, wanted, now)))
    try {
      await this.tellIfUnknown(queue, 'paused')
      await this.#change(queue, (before) => strongerPause(before, wanted, now))
    } finally {
      await this.refresh()
    }
  }

  /** null: none. */
  async limit(queue: string, limits: LimitOptions | null): Promise<void> {
    const { store } = this.#session
    // A rate per group needs to know which groups wait.
    if (limits?.ratePerGroup !== undefined && store.waitingGroups === undefined)
      throw new HoldfastError('INVALID_OPTION', `ratePerGroup: ${store.address} cannot list the groups that wait`, {
        field: 'ratePerGroup',
      })
    await this.limits.set(queue, limits)
    if (limits !== null) await this.tellIfUnknown(queue, 'limited')
  }

  async #changeGroup(queue: string, group: string, wanted: Pause | null): Promise<void> {
    await this.limits.pauseGroup(queue, group, wanted)
    for (const listener of this.#listeners) listener()
  }

  /** Warns about an unknown name: a queue may be paused or limited before its first task, but more often the name is misspelt. */
  async tellIfUnknown(queue: string, what: 'paused' | 'limited'): Promise<void> {
    const names = await withPatience(this.#session, () => this.names())
    if (names.includes(queue)) return
    const meant = nearest(queue, names)
    // Limits are often set by code that starts before the first task.
    if (what === 'limited' && meant === null) return
    this.#session.logger.warn(
      `queue '${queue}' has never been used here${meant === null ? '.' : `: did you mean '${meant}'?`} It is ${what} all the same`,
      { queue },
    )
  }

  /** MOVE_UNDER_WAY while a move holds the pause. With `force` it resumes anyway, and tasks may run in both stores. */
  async resume(queue: string, { force = false, group }: ResumeOptions = {}): Promise<void> {
    if (group !== undefined) return this.#changeGroup(queue, checkGroup(group), null)
    await this.#change(queue, (before) => {
      if (before?.move !== undefined && !force) {
        throw new HoldfastError(
          'MOVE_UNDER_WAY',
          `queue '${queue}' is paused by an unfinished move from ${before.move.from}`,
          { queue, from: before.move.from },
        )
      }
      return null
    })
    await this.refresh()
  }

  /** null means no pause. */
  async #change(queue: string, decide: (before: Pause | null) => Pause | null): Promise<void> {
    await editDocument(this.#session, PAUSE + checkName(queue, 'queue'), (text) => {
      const before = text === null ? null : readPause(text)
      const after = decide(before)
      return after === before ? text : after === null ? null : JSON.stringify(after)
    })
  }

  /** Reads the pauses again and returns the queues that are paused now. */
  async refresh(patience: Patience = {}): Promise<ReadonlySet<string>> {
    const began = this.#session.clock.mono()
    const list = (): Promise<readonly Document[]> => this.#session.store.documents.list(PAUSE)
    const [documents] = await Promise.all([withPatience(this.#session, list, patience), this.limits.refresh(patience)])
    this.#refreshedAt = began
    this.#sweep(documents)
    return this.#set(new Map(documents.map(({ name, value }) => [name.slice(PAUSE.length), readPause(value)])))
  }

  #set(pauses: ReadonlyMap<string, Pause>): ReadonlySet<string> {
    this.#pauses = pauses
    const paused = this.#inForce()
    const changed = paused.size !== this.#paused.size || [...paused].some((queue) => !this.#paused.has(queue))
    this.#paused = paused
    if (changed) for (const listener of this.#listeners) listener()
    return paused
  }

  #inForce(): ReadonlySet<string> {
    return new Set([...this.#pauses.keys()].filter((queue) => this.isPaused(queue)))
  }

  /** Removes pauses that ended long ago. A failure is ignored: the next refresh tries again. */
  #sweep(documents: readonly Document[]): void {
    const before = this.#session.time.now() - SWEPT_AFTER
    for (const { name, value, version } of documents)
      if (!isInForce(readPause(value), before)) this.#session.store.documents.delete(name, version).catch(() => {})
  }

  /** The paused queues as of a refresh at most about `age` old, so that frequent callers share one read. */
  async recent(age: number): Promise<ReadonlySet<string>> {
    return this.#session.clock.mono() - this.#refreshedAt < age ? this.#inForce() : this.refresh()
  }

  /** As of the last refresh. */
  isPaused(queue: string, group: string | null = null): boolean {
    if (group !== null && this.limits.pausedGroups(queue).has(group)) return true
    const pause = this.#pauses.get(queue)
    return pause !== undefined && isInForce(pause, this.#session.time.now())
  }

  /** As of the last refresh. */
  pauseOf(queue: string): Pause | null {
    return this.isPaused(queue) ? (this.#pauses.get(queue) ?? null) : null
  }

  /** When the pause ends by itself, as of the last refresh; null if it must be resumed or there is none. */
  pausedUntil(queue: string): Instant | null {
    const pause = this.#pauses.get(queue)
    return pause === undefined || !this.isPaused(queue) ? null : endOf(pause)
  }

  /** Called when a refresh found a change. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
