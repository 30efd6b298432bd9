/**
 * Follows the store for all viewers together, while there is at least one. Sends a summary every second, and single changes
 * up to a limit, so that a busy store does not flood a page.
 */
import type { Client, QueueStats, TaskChange } from '../../index.ts'
import { type Tick, Ticker } from './ticker.ts'

export type FeedEvent =
  | { readonly name: 'changes'; readonly changes: readonly TaskChange[]; readonly skipped: number }
  | { readonly name: 'tick'; readonly tick: Tick }
  | { readonly name: 'stats'; readonly queues: readonly QueueStats[] }

type Viewer = (event: FeedEvent) => void
type Listener = (change: TaskChange) => void

/** How long changes are collected before they are sent. */
const EVERY = 250
/** Maximum number of changes per event: a page shows no more. */
const MOST_CHANGES = 200
const STATS_EVERY = 2_000
/** Counts stop here: enough to distinguish a few tasks from very many. */
export const STATS_CAP = 10_000
/** Counting pauses for this many times as long as it took, to limit the load on the store. */
const REST = 30
/** Maximum number of changes per poll for viewers; a busier store is sampled. */
const MOST_LOOKED_AT = 2_000
/** A follower that fails restarts after this. */
const AGAIN = 2_000

export class Feed {
  readonly #client: Client
  /** With the caller of each, where it is known. */
  readonly #viewers = new Map<Viewer, string | null>()
  readonly #listeners = new Set<Listener>()
  readonly #ticker = new Ticker()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #closing = new AbortController()
  #following: AbortController | null = null
  #looking = new AbortController()
  #gathered: TaskChange[] = []
  #skipped = 0

  constructor(client: Client) {
    this.#client = client
  }

  get viewers(): number {
    return this.#viewers.size
  }

  viewersOf(caller: string): number {
    return [...this.#viewers.values()].filter((one) => one === caller).length
  }

  /** The watched seconds of the last five minutes. */
  get past(): readonly Tick[] {
    return this.#ticker.past
  }

  /** Aborts when the handler is closed, which ends the streams. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** Receives events until the returned function is called. */
  watch(viewer: Viewer, caller: string | null = null): () => void {
    this.#viewers.set(viewer, caller)
    return this.#join(() => this.#viewers.delete(viewer))
  }

  /** Like `watch`, but receives every single change and nothing else. */
  listen(listener: Listener): () => void {
    const wasForViewers = this.#following !== null && this.#listeners.size === 0
    this.#listeners.add(listener)
    const leave = this.#join(() => this.#listeners.delete(listener))
    // A follower for viewers alone may skip changes.
    if (wasForViewers) this.#lookAnew()
    return () => {
      leave()
      if (this.#listeners.size === 0) this.#lookAnew()
    }
  }

  close(): void {
    this.#closing.abort()
    this.#viewers.clear()
    this.#listeners.clear()
    this.#end()
  }

  #join(leave: () => void): () => void {
    if (this.#following === null && !this.#closing.signal.aborted) this.#begin()
    return () => {
      leave()
      if (this.#viewers.size + this.#listeners.size === 0) this.#end()
    }
  }

  #begin(): void {
    const following = new AbortController()
    this.#following = following
    this.#ticker.restart(Date.now())
    this.#repeat(EVERY, () => this.#tellChanges())
    this.#repeat(1_000, () => this.#tell({ name: 'tick', tick: this.#ticker.turn(Date.now()) }))
    void this.#follow(following.signal)
    void this.#count(following.signal)
  }

  #lookAnew(): void {
    if (this.#following === null) return
    this.#looking.abort()
    this.#looking = new AbortController()
  }

  #end(): void {
    this.#lookAnew()
    this.#following?.abort()
    this.#following = null
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#gathered = []
    this.#skipped = 0
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const most = this.#listeners.size === 0 ? { most: MOST_LOOKED_AT } : null
        const { signal: looking } = this.#looking
        for await (const change of this.#client.changes({ signal: looking, ...most })) this.#gather(change)
        if (looking.aborted) continue
      } catch {
        // A viewer sees a store error with its next request.
      }
      if (!signal.aborted) await this.#pause(AGAIN)
    }
  }

  #gather(change: TaskChange): void {
    this.#ticker.count(change)
    for (const listener of this.#listeners) listener(change)
    if (this.#viewers.size === 0) return
    const isTold = this.#gathered.length < MOST_CHANGES
    if (isTold) this.#gathered.push(change)
    this.#skipped += (change.weight ?? 1) - (isTold ? 1 : 0)
  }

  #tellChanges(): void {
    if (this.#gathered.length === 0) return
    this.#tell({ name: 'changes', changes: this.#gathered, skipped: Math.max(0, Math.round(this.#skipped)) })
    this.#gathered = []
    this.#skipped = 0
  }

  /** Repeats, and pauses much longer than each round took. */
  async #count(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const began = performance.now()
      try {
        // Without viewers, nothing is counted.
        const queues = this.#viewers.size === 0 ? null : await this.#client.stats({ cap: STATS_CAP })
        if (queues !== null && !signal.aborted) this.#tell({ name: 'stats', queues })
      } catch {
        // The next round reports it.
      }
      if (!signal.aborted) await this.#pause(Math.max(STATS_EVERY, REST * (performance.now() - began)))
    }
  }

  #tell(event: FeedEvent): void {
    for (const viewer of [...this.#viewers.keys()]) viewer(event)
  }

  #repeat(every: number, work: () => void): void {
    this.#timers.add(setInterval(work, every).unref())
  }

  #pause(length: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer)
        done()
      }, length).unref()
      this.#timers.add(timer)
    })
  }
}
