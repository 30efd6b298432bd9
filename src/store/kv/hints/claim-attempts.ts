/** The hints that one claim tries, block by block, and when it stops: leased tasks must reach their worker soon. */
import type { Hint } from '../records/hint-names.ts'
import type { Block } from './contention.ts'

/** Under contention, how long a claim goes on after its first lease. */
const AFTER_FIRST = 250
/** After the first lease, how long a claim waits for pending requests. A slow server answers within this time. */
const GRACE = 5_000
/** How long a claim goes on without any lease. */
const IN_VAIN = 1_000
/** Attempts beyond the limit that may find a task of another process. */
const MOST_MISSES = 40
/** Tasks whose reads or writes the server may refuse before the claim stops. */
const MOST_REFUSED = 10

/** `taken`: another process has the task, or had it. */
export type AttemptOutcome = 'taken' | 'done'

export class ClaimAttempts {
  readonly #blocks: readonly Block[]
  readonly #limit: number
  readonly #probes: boolean
  readonly #begun = performance.now()
  #at = 0
  /** Hints of blocks whose first task was free. */
  #open: Hint[] = []
  /** Hints of blocks whose first task was taken. They may still be free, and are tried when nothing else is left. */
  #skipped: Hint[] = []
  /** Blocks whose first hint is being tried, by that hint. */
  readonly #probing = new Map<string, Block>()
  readonly #waiting: (() => void)[] = []
  #leases = 0
  #misses = 0
  #refused = 0
  #hasFailed = false
  #firstAt: number | null = null
  readonly #over = Promise.withResolvers<void>()
  #timer: NodeJS.Timeout | null = null
  /** No more is leased for this claim: a lease that comes now must be released. */
  isOver = false

  /** `isContested`: try the first hint of a block before the others. */
  constructor(blocks: readonly Block[], limit: number, isContested: boolean) {
    this.#blocks = blocks
    this.#limit = limit
    this.#probes = isContested
  }

  /** The claim stopped before it had tried every hint. */
  get isIncomplete(): boolean {
    if (this.#leases >= this.#limit) return false
    if (this.#skipped.length > 0) return true
    return this.mustStop && (this.#at < this.#blocks.length || this.#open.length > 0)
  }

  /** Other processes have taken many of the listed tasks. */
  get isOutdated(): boolean {
    return this.#misses > Math.max(8, this.#limit / 4)
  }

  /** null: stop. */
  async next(): Promise<Hint | null> {
    for (;;) {
      if (this.mustStop) return null
      const open = this.#open.shift()
      if (open !== undefined) return open
      if (this.#at < this.#blocks.length && this.#probingCount < this.#limit - this.#leases) return this.#nextBlock()
      if (this.#probing.size === 0) return this.#nextSkipped()
      await new Promise<void>((go) => this.#waiting.push(go))
    }
  }

  #nextSkipped(): Hint | null {
    return this.#leases === 0 ? (this.#skipped.shift() ?? null) : null
  }

  #nextBlock(): Hint {
    const block = this.#blocks[this.#at++]!
    const [first] = block
    if (this.#probes && block.length > 1) this.#probing.set(first!.key, block)
    else this.#open = block.slice(1)
    return first!
  }

  get #probingCount(): number {
    let count = 0
    for (const block of this.#probing.values()) count += block.length
    return count
  }

  get mustStop(): boolean {
    if (this.#hasFailed || this.#refused >= MOST_REFUSED) return true
    if (this.#misses === 0) return false
    const now = performance.now()
    if (this.#firstAt !== null && now - this.#firstAt > AFTER_FIRST) return true
    return now - this.#begun > IN_VAIN || this.#misses > this.#limit + MOST_MISSES
  }

  /** Must be called for every hint that `next` returned. */
  tried({ key }: Hint, outcome: AttemptOutcome): void {
    if (outcome === 'taken') this.#misses++
    const block = this.#probing.get(key)
    this.#probing.delete(key)
    if (block !== undefined) (outcome === 'done' ? this.#open : this.#skipped).push(...block.slice(1))
    for (const go of this.#waiting.splice(0)) go()
  }

  /** The server refuses this task. Others may be leased. */
  refused(): void {
    this.#refused++
  }

  /** The store as a whole fails: what is leased is delivered, and nothing more is tried. */
  failed(): void {
    this.#hasFailed = true
  }

  leased(): void {
    this.#leases++
    this.#firstAt ??= performance.now()
    this.#timer ??= setTimeout(() => this.#over.resolve(), GRACE)
  }

  /** Leased tasks have waited for GRACE. */
  get isLate(): boolean {
    return this.#firstAt !== null && performance.now() - this.#firstAt > GRACE
  }

  /** Waits for the work, but not longer than GRACE after the first lease. */
  async until(work: Promise<unknown>): Promise<void> {
    work.catch(() => {})
    await Promise.race([work, this.#over.promise])
  }

  close(): void {
    this.isOver = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }
}
