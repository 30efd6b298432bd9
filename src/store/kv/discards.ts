/** Takes away, a little later and many at once, what nothing refers to any more. What a crash leaves, a look or a sweep finds. */
import { Bundles } from './bundles.ts'
import { type Hint, parseHint, READY } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'

const MOST = 1_000

export class Discards {
  readonly #kv: SteadyKeyValue
  /** Also those under way: a look that still sees them knows better. */
  readonly #keys = new Set<string>()
  readonly #bundles = new Bundles()
  #waiting: string[] = []
  #running: Promise<void> | null = null

  constructor(kv: SteadyKeyValue) {
    this.#kv = kv
  }

  has(key: string): boolean {
    return this.#keys.has(key) || this.#bundles.hasLeft(key)
  }

  /** The hints in a key that a look has listed. A bundle of which none is left should have been taken away before. */
  hintsIn(key: string): readonly Hint[] {
    const hints = this.#bundles.listed(key)
    if (hints?.length === 0) this.add([key])
    if (hints !== null) return hints
    const hint = parseHint(key)
    return hint === null ? [] : [hint]
  }

  add(keys: readonly string[]): void {
    for (const name of keys) {
      const key = this.#keyOf(name)
      if (key === null || this.#keys.has(key)) continue
      this.#keys.add(key)
      this.#waiting.push(key)
    }
    // In a moment: what is taken away in the same tick goes in one request.
    if (this.#waiting.length > 0) this.#running ??= new Promise<void>((go) => setImmediate(go)).then(() => this.#run())
  }

  /** null: a hint whose key others still need, or may need. */
  #keyOf(name: string): string | null {
    const hint = name.startsWith(READY) ? parseHint(name) : null
    return hint === null || hint.bundle === null ? name : this.#bundles.leave(hint)
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, MOST)
      // Not worth an error: they are harmless, and met again.
      await this.#kv.delete(some).catch(() => {})
      for (const key of some) this.#keys.delete(key)
    }
    this.#running = null
  }

  /** Resolves when all have been taken away. */
  async settled(): Promise<void> {
    while (this.#running !== null) await this.#running
  }
}
