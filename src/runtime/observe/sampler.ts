/**
 * Follows a store for viewers. While at most `most` tasks change between two polls, it reports every change, like the follower.
 * Above that it samples: a poll reads a slice of time, and each change of the slice represents several.
 */

import { Task } from '../../core/observe/task-view.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import type { Query } from '../../store/store.ts'
import type { Session } from '../session.ts'
import { byTime, type Follower, POLL_EVERY, type TaskChange } from './follower.ts'

const FIRST_SLICE = 100
const SHORTEST_SLICE = 20
/** A slice ended this long ago, because a change becomes visible some time after its stamp. */
const LAG = 500
/** How many of the tasks found in a slice are read with their histories. */
const MOST_READ = 100
/** The interval of polls while changes are sampled. */
const SLICES_EVERY = 500
/** Polls pause for this many times as long as they took: a poll can be slow, above all on PostgreSQL, whose index of completed tasks is coarse. */
const REST = 20
const LONGEST_REST = 10_000

export class Sampler {
  readonly #session: Session
  readonly #query: Query
  readonly #follower: Follower
  readonly #most: number
  /** While changes are sampled: the length of the next slice and when the last poll began. null: everything is reported. */
  #sampling: { readonly slice: number; readonly polledAt: Instant } | null = null
  #took = 0

  constructor(session: Session, query: Query, follower: Follower, most: number) {
    this.#session = session
    this.#query = query
    this.#follower = follower
    this.#most = most
  }

  /** How long to wait before the next poll. */
  get rest(): number {
    return Math.min(Math.max(this.#sampling === null ? POLL_EVERY : SLICES_EVERY, REST * this.#took), LONGEST_REST)
  }

  async *poll(): AsyncGenerator<readonly TaskChange[], void, undefined> {
    const { clock } = this.#session
    const began = clock.mono()
    if (this.#sampling === null) {
      // A viewer may arrive while very much changes: late changes from before are not worth a long poll.
      const polledAt = yield* this.#follower.poll({ most: this.#most, isFirstLong: false })
      if (polledAt !== null) this.#sampling = { slice: FIRST_SLICE, polledAt }
    } else yield await this.#pollSlice(this.#sampling)
    this.#took = clock.mono() - began
  }

  /** The changes of the slice represent all changes since the last poll. */
  async #pollSlice(sampling: { readonly slice: number; readonly polledAt: Instant }): Promise<readonly TaskChange[]> {
    const { store, time } = this.#session
    let [now, slice] = [time.now(), sampling.slice]
    let found = await this.#listSlice(now, slice)
    if (found.length === this.#most && slice > SHORTEST_SLICE) {
      // The list was cut off, so the number of changes is unknown: read a shorter slice.
      ;[now, slice] = [time.now(), SHORTEST_SLICE]
      found = await this.#listSlice(now, slice)
    }
    const read = found.slice(0, MOST_READ)
    const records = await store.get(read.map(({ id }) => id))
    const elapsed = now - sampling.polledAt
    const weight = (elapsed / slice) * (found.length / Math.max(1, read.length))
    this.#adapt(now, elapsed, slice, found.length)
    return records
      .flatMap((record) => {
        if (record === null) return []
        const task = new Task(record)
        // Includes the earlier entries of a task that was claimed and ended within the slice.
        return record.history.filter(({ at }) => at > task.updatedAt - LAG).map((entry) => ({ entry, task, weight }))
      })
      .sort(byTime)
  }

  /** Chooses the next slice by how much was found, and returns to reporting everything once there is little. */
  #adapt(now: Instant, elapsed: number, slice: number, found: number): void {
    if (slice >= elapsed && found < this.#most / 4) {
      this.#sampling = null
      this.#follower.resume(now - LAG, now)
    } else if (found < this.#most / 16) this.#sampling = { slice: Math.max(2 * slice, elapsed + LAG), polledAt: now }
    else this.#sampling = { slice: found < this.#most / 4 ? 2 * slice : slice, polledAt: now }
  }

  async #listSlice(now: Instant, slice: number): Promise<readonly TaskRecord[]> {
    const page = { order: 'newest', limit: this.#most, now: null } as const
    const until = now - LAG
    const query = { ...this.#query, updatedAfter: until - slice - 1, updatedBefore: until }
    return (await this.#session.store.list(query, page)).tasks
  }
}
