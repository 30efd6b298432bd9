/** Claimed tasks that wait for a slot, in lanes: one lane for tasks that start one by one, and one for each type that starts in batches. */
import type { Cancel, Clock } from '../../clock.ts'
import type { Attempt } from '../attempt.ts'
import { AHEAD, claimSize } from './claim-size.ts'
import { Prefetched } from './prefetched.ts'
import { RecentRate } from './recent-rate.ts'

export interface LanesHost {
  /** Types that are not handled in batches. */
  singleTypes(): readonly string[]
  /** Free slots. */
  free(): number
  /** How many more leases can be kept; 0 while nothing may be claimed. */
  room(): number
  release(attempts: readonly Attempt[]): void
  /** A batch has waited long enough. */
  ripe(): void
  /** A worker that drains starts batches without waiting for more tasks. */
  isDraining(): boolean
}

/** How long a batch that is complete waits for a slot before its tasks may be released for other workers. */
const FOR_A_SLOT = 1_000

/** What one slot runs: a task or a batch. */
export type Turn = Attempt | readonly Attempt[]

export class Lane {
  readonly types: () => readonly string[]
  /** The most tasks in one slot. */
  readonly size: number
  readonly wait: number
  readonly starts: RecentRate
  readonly waiting: Prefetched
  /** How many tasks the looks in flight may return. */
  asked = 0
  readonly #lanes: Lanes

  constructor(lanes: Lanes, clock: Clock, host: LanesHost, types: () => readonly string[], size = 1, wait = 0) {
    this.#lanes = lanes
    this.types = types
    this.size = size
    this.wait = wait
    this.starts = new RecentRate(() => clock.mono())
    this.waiting = new Prefetched(
      clock,
      this.starts,
      (attempts) => host.release(attempts),
      () => this.#isGathering(clock.mono()),
    )
  }

  /** How many tasks to claim now. */
  room(): number {
    return this.#lanes.roomOf(this)
  }

  /** How many more tasks could start at once: what fits the free slots, less what it holds and may get. */
  startable(): number {
    return this.#lanes.startableIn(this)
  }

  /** Its first task may start, alone or with others. */
  isRipe(now: number): boolean {
    const { first, length } = this.waiting
    return first !== undefined && (length >= this.size || first.claimedAt + this.wait <= now)
  }

  /** It waits for others of its batch, or has just begun to wait for a slot. */
  #isGathering(now: number): boolean {
    const { first, length } = this.waiting
    return first !== undefined && length < this.size && first.claimedAt + this.wait + FOR_A_SLOT > now
  }

  /** Slots for what it holds and may get. A batch that waits for more tasks needs none yet. */
  slots(now: number): number {
    return this.wait === 0 || this.isRipe(now) ? this.slotsInAll : Math.floor(this.#slots)
  }

  /** As `slots`, with the one that a batch will need when it has waited. */
  get slotsInAll(): number {
    return Math.ceil(this.#slots)
  }

  get #slots(): number {
    return (this.waiting.length + this.asked) / this.size
  }
}

export class Lanes {
  readonly #clock: Clock
  readonly #host: LanesHost
  /** For all types that are not handled in batches. */
  readonly single: Lane
  readonly #byType = new Map<string, Lane>()
  #all: readonly Lane[]
  #next = 0
  #cancel: Cancel | null = null

  constructor(clock: Clock, host: LanesHost) {
    this.#clock = clock
    this.#host = host
    this.single = new Lane(this, clock, host, () => host.singleTypes())
    this.#all = [this.single]
  }

  get all(): readonly Lane[] {
    return this.#all
  }

  addBatch(type: string, size: number, wait: number): Lane {
    const lane = new Lane(this, this.#clock, this.#host, () => [type], size, wait)
    this.#byType.set(type, lane)
    this.#all = [...this.#all, lane]
    return lane
  }

  /** Tasks that are held and not started. */
  get length(): number {
    let length = 0
    for (const { waiting } of this.#all) length += waiting.length
    return length
  }

  /** Groups of tasks of a queue that are held and not started. */
  groupsOf(queue: string): readonly string[] {
    return this.#all.flatMap(({ waiting }) => waiting.groupsOf(queue))
  }

  /** Tasks of a queue that are held and not started. */
  countOf(queue: string): number {
    let count = 0
    for (const { waiting } of this.#all) count += waiting.countOf(queue)
    return count
  }

  add(attempts: readonly Attempt[]): void {
    if (this.#byType.size === 0) this.single.waiting.add(attempts)
    else for (const attempt of attempts) (this.#byType.get(attempt.record.type) ?? this.single).waiting.add([attempt])
  }

  /** At most one turn for each free slot, from the lanes in rotation. */
  take(free: number): readonly Turn[] {
    if (this.#all.length === 1) return this.#takeFrom(this.single, free)
    const turns: Turn[] = []
    const isEager = this.#host.isDraining()
    const now = this.#clock.mono()
    for (let idle = 0; turns.length < free && idle < this.#all.length; this.#next++) {
      const lane = this.#all[this.#next % this.#all.length]!
      if (!(lane.isRipe(now) || (isEager && lane.waiting.length > 0))) {
        idle++
        continue
      }
      idle = 0
      const some = this.#takeFrom(lane, lane.size)
      turns.push(lane === this.single ? some[0]! : some)
    }
    this.#arm(now)
    return turns
  }

  #takeFrom(lane: Lane, most: number): readonly Attempt[] {
    const some = lane.waiting.take(most)
    lane.starts.add(some.length)
    return some
  }

  /** Sets a timer for the next batch that will have waited long enough. */
  #arm(now: number): void {
    this.#cancel?.()
    this.#cancel = null
    let soonest = Number.POSITIVE_INFINITY
    for (const { waiting, wait } of this.#all) {
      const at = waiting.first === undefined ? soonest : waiting.first.claimedAt + wait
      // A batch that is ripe already waits for a slot, and needs no timer.
      if (at > now) soonest = Math.min(soonest, at)
    }
    if (soonest < Number.POSITIVE_INFINITY) this.#cancel = this.#clock.after(soonest - now, () => this.#host.ripe())
  }

  roomOf(lane: Lane): number {
    const now = this.#clock.mono()
    let free = this.#host.free()
    let room = this.#host.room()
    for (const other of this.#all) {
      if (other === lane) continue
      free -= other.slots(now)
      room -= other.asked
    }
    return claimSize({
      free: Math.max(0, free) * lane.size,
      held: lane.waiting.length,
      asked: lane.asked,
      started: lane.starts.within(AHEAD),
      room,
    })
  }

  /** Never more than the slots allow that no other lane will need. */
  startableIn(lane: Lane): number {
    let free = this.#host.free()
    for (const other of this.#all) if (other !== lane) free -= other.slotsInAll
    return Math.max(0, free) * lane.size - lane.waiting.length - lane.asked
  }

  /** Releases the tasks for which `isUnwanted` returns true. Default: all. */
  releaseAll(isUnwanted?: (attempt: Attempt) => boolean): void {
    for (const { waiting } of this.#all) waiting.releaseAll(isUnwanted)
  }

  releaseSurplusLater(): void {
    for (const { waiting } of this.#all) waiting.releaseSurplusLater()
  }

  close(): void {
    this.#cancel?.()
    for (const { waiting } of this.#all) waiting.close()
  }
}
