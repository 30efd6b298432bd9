/** The index of ended tasks. Entries are written in segments, read by status and time, and merged now and then. */
import type { Instant } from '../../../core/task.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import type { Timers } from '../access/timers.ts'
import type { Tasks } from '../records/tasks.ts'
import { buildIndex, LEASE_TTL } from './build-index.ts'
import { EndedReader } from './ended-reader.ts'
import { EndedWriter, type EndedWriterParts } from './ended-writer.ts'
import { IndexState, type MaintenanceLease } from './index-state.ts'
import { mergeSegments } from './merge-segments.ts'
import { Segments } from './segments.ts'

/** After one process has merged, no process merges for this long. */
const MERGE_EVERY = 600_000
/** Merges for one lease. Each replaces about 200 segments of every queue and status. */
const MOST_MERGES = 50

export class EndedIndex {
  readonly writer: EndedWriter
  readonly reader: EndedReader
  readonly state: IndexState
  readonly #kv: RetryingKeyValue
  readonly #segments: Segments
  readonly #mono: () => number
  /** Monotonic: when to merge, and when to build the index if it is incomplete. */
  #dueAt: number
  #buildDueAt = Number.NEGATIVE_INFINITY
  #isStopped = false

  constructor(kv: RetryingKeyValue, timers: Timers, { read, withdraw }: Pick<EndedWriterParts, 'read' | 'withdraw'>) {
    const mono = (): number => timers.mono()
    this.#kv = kv
    this.#mono = mono
    this.#segments = new Segments(kv)
    this.writer = new EndedWriter({ segments: this.#segments, withdraw, timers, read, now: () => this.#now() })
    this.reader = new EndedReader(this.#segments)
    this.state = new IndexState(kv, mono)
    // Spreads processes that started together.
    this.#dueAt = mono() + MERGE_EVERY * (0.5 + Math.random() / 2)
  }

  /** Builds the index if it is incomplete, else merges segments. One process at a time does this, in the background. */
  async maintain(tasks: Tasks): Promise<void> {
    const isComplete = await this.state.isComplete()
    if (this.#mono() < (isComplete ? this.#dueAt : this.#buildDueAt)) return
    this.#dueAt = this.#mono() + MERGE_EVERY
    this.#buildDueAt = this.#mono() + LEASE_TTL
    const now = await this.#now()
    const lease = await this.state.take(now, now + (isComplete ? MERGE_EVERY : LEASE_TTL))
    if (lease === null) return
    if (lease.isComplete) await this.#merge(now)
    else await this.#build(tasks, lease)
  }

  async #merge(now: Instant): Promise<void> {
    for (let merges = 0; merges < MOST_MERGES && !this.#isStopped; merges++)
      if ((await mergeSegments(this.#segments, now)) === 0) return
  }

  #build(tasks: Tasks, lease: MaintenanceLease): Promise<boolean> {
    const parts = { kv: this.#kv, tasks, segments: this.#segments }
    return buildIndex({ ...parts, now: () => this.#now(), isStopped: () => this.#isStopped }, lease)
  }

  /** Work in progress stops at the next page. */
  stop(): void {
    this.#isStopped = true
  }

  async #now(): Promise<Instant> {
    return (await this.#kv.now()).at
  }
}
