/** Hints that share a key, as far as this process has listed them: which of their tasks need it no more. Bounded. */
import { bundleOfKey, type Hint, hintsIn } from './names.ts'

const MOST = 2_000

interface Known {
  readonly key: string
  readonly hints: readonly Hint[]
  waiting: number
}

export class Bundles {
  readonly #known = new Map<string, Known>()
  /** Hints of tasks that have moved on. */
  readonly #left = new Set<string>()

  /** The hints in a key that was listed, but for those that are known to be over. null: this is no bundle. */
  listed(key: string): readonly Hint[] | null {
    const name = bundleOfKey(key)
    if (name === null) return null
    const known = this.#known.get(name) ?? this.#meet(name, key)
    return known.waiting === known.hints.length ? known.hints : known.hints.filter((hint) => !this.#left.has(hint.key))
  }

  #meet(name: string, key: string): Known {
    const hints = hintsIn(key)
    const known: Known = { key, hints, waiting: hints.length }
    this.#known.set(name, known)
    for (const [oldest, { hints: forgotten }] of this.#known) {
      if (this.#known.size <= MOST) break
      this.#known.delete(oldest)
      for (const hint of forgotten) this.#left.delete(hint.key)
    }
    return known
  }

  /** Nothing needs this hint any more. Answers with the key of its bundle, once that holds for all in it. */
  leave({ key, bundle }: Hint): string | null {
    const known = this.#known.get(bundle!)
    // Never listed here: whoever lists it finds out.
    if (known === undefined) return null
    if (!this.#left.has(key)) known.waiting--
    this.#left.add(key)
    return known.waiting === 0 ? known.key : null
  }

  hasLeft(hint: string): boolean {
    return this.#left.has(hint)
  }
}
