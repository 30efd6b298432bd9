/**
 * Whether other processes claim from the same queue, and how to stay out of their way. A process that is alone claims in list
 * order. Under contention the list falls into blocks that are the same for all, and each process tries them in its own order.
 */
import type { Instant } from '../../../core/task.ts'
import { newNonce } from '../records/bodies.ts'
import { type Hint, queuePrefixOf } from '../records/hint-names.ts'

/** A process that has lost no race for this long is alone. */
const MEMORY = 10_000

/** A process that loses races for announced tasks waits longer before it tries; one that wins waits less. */
const FIRST_YIELD = 100
const LONGEST_YIELD = 3_000
const [SLOWER, FASTER] = [1.3, 0.7] as const
/** A process that wins less than this share of its races follows: another one takes nearly everything. */
const FOLLOWS_BELOW = 0.2
/** The weight of one race in that share. */
const WEIGHT = 0.05
/** After this long a list has shown which of the tasks that were left to others have not ended. */
const LEFT_FOR = 45_000
/** With more kinds of tasks than this, nothing is known about their order. */
const MOST_KINDS = 1_000

/** Hints that one process claims together. The first one shows whether another process has started on them. */
export type Block = readonly Hint[]

export class Contention {
  readonly #seed = hashOf(newNonce(), 0x811c9dc5)
  readonly #now: () => number
  #lostAt = Number.NEGATIVE_INFINITY
  /** Of the last races. */
  #wonShare = 1
  #yield = 0
  /** By kind: the latest task that was found taken. */
  readonly #taken = new Map<string, Instant>()

  /** `now`: monotonic. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  get isContested(): boolean {
    return this.#now() - this.#lostAt < MEMORY
  }

  /** Another process had the task already. */
  lost(hint?: Hint): void {
    this.#lostAt = this.#now()
    this.#wonShare *= 1 - WEIGHT
    this.#yield = Math.min(LONGEST_YIELD, Math.max(FIRST_YIELD, this.#yield * SLOWER))
    if (hint === undefined || !isAlone(hint)) return
    if (this.#taken.size > MOST_KINDS) this.#taken.clear()
    const kind = kindOf(hint)
    this.#taken.set(kind, Math.max(hint.availableAt, this.#taken.get(kind) ?? hint.availableAt))
  }

  won(): void {
    this.#wonShare += (1 - this.#wonShare) * WEIGHT
    this.#yield = this.#yield < FIRST_YIELD ? 0 : this.#yield * FASTER
  }

  /**
   * A quicker process has surely taken this task: it has taken a later one of the same kind, and wins nearly always. It looks at
   * every task.
   */
  isOvertaken(hint: Hint, now: Instant): boolean {
    if (!this.isContested || this.#wonShare > FOLLOWS_BELOW || now - hint.availableAt > LEFT_FOR) return false
    return isAlone(hint) && hint.availableAt <= (this.#taken.get(kindOf(hint)) ?? Number.NEGATIVE_INFINITY)
  }

  /** The longest delay before this process tries an announced task. */
  get yield(): number {
    return this.isContested ? this.#yield : 0
  }

  /** A stable hash, so that two processes delay different tasks. */
  delayOf(name: string): number {
    return (hashOf(name, this.#seed) / 2 ** 32) * this.yield
  }

  /** `ready` is in claim order. */
  blocks(ready: readonly Hint[]): readonly Block[] {
    if (!this.isContested) return ready.length === 0 ? [] : [ready]
    const ends = ready.findIndex(({ priority }) => priority !== ready[0]!.priority)
    const first = ends === -1 ? ready : ready.slice(0, ends)
    // The tasks of a bundle stay together, so that one process can delete it. Others are grouped by the random end of their ids.
    const blocks = [...Map.groupBy(first, ({ bundle, id }) => bundle ?? id.slice(-2))]
    const ranked = blocks.map(([name, hints]) => ({ hints, rank: hashOf(name, this.#seed) }))
    ranked.sort((a, b) => a.rank - b.rank)
    const rest = ready.slice(first.length).map((hint) => [hint])
    return [...ranked.map(({ hints }) => hints), ...rest]
  }
}

/** Tasks of a bundle are found by one key, and those of a group are claimed in turns. */
const isAlone = ({ bundle, group }: Hint): boolean => bundle === null && group === null

/** Tasks of one kind are claimed in the order in which they are due. */
const kindOf = ({ key, type, priority }: Hint): string => `${queuePrefixOf(key)}${priority} ${type}`

/** FNV-1a. */
const hashOf = (text: string, seed: number): number => {
  let hash = seed
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
