/**
 * Whether other processes claim from the same queue, and how to stay out of their way. A process that is alone claims in list
 * order. Under contention the list falls into blocks that are the same for all, and each process tries them in its own order.
 */
import { newNonce } from '../records/bodies.ts'
import type { Hint } from '../records/hint-names.ts'

/** A process that has lost no race for this long is alone. */
const MEMORY = 10_000

/** A process that loses races for announced tasks waits longer before it tries; one that wins waits less. */
const FIRST_YIELD = 100
const LONGEST_YIELD = 3_000
const [SLOWER, FASTER] = [1.3, 0.7] as const

/** Hints that one process claims together. The first one shows whether another process has started on them. */
export type Block = readonly Hint[]

export class Contention {
  readonly #seed = hashOf(newNonce(), 0x811c9dc5)
  #lostAt = Number.NEGATIVE_INFINITY
  #yield = 0

  get isContested(): boolean {
    return performance.now() - this.#lostAt < MEMORY
  }

  /** Another process had the task already. */
  lost(): void {
    this.#lostAt = performance.now()
    this.#yield = Math.min(LONGEST_YIELD, Math.max(FIRST_YIELD, this.#yield * SLOWER))
  }

  won(): void {
    this.#yield = this.#yield < FIRST_YIELD ? 0 : this.#yield * FASTER
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

/** FNV-1a. */
const hashOf = (text: string, seed: number): number => {
  let hash = seed
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
