/** Bundles that this process has listed, and which of their hints are withdrawn. Bounded. */
import { bundleOfKey, hintsIn } from '../records/bundle-names.ts'
import type { Hint } from '../records/hint-names.ts'

const MOST = 2_000

interface Bundle {
  readonly key: string
  readonly hints: readonly Hint[]
  /** How many of its tasks still need the bundle. */
  needed: number
}

export class KnownBundles {
  readonly #bundles = new Map<string, Bundle>()
  readonly #withdrawn = new Set<string>()

  /** The hints of a listed key that are not withdrawn. null: the key is not a bundle. */
  hintsIn(key: string): readonly Hint[] | null {
    const name = bundleOfKey(key)
    if (name === null) return null
    const { needed, hints } = this.#bundles.get(name) ?? this.#add(name, key)
    return needed === hints.length ? hints : hints.filter((hint) => !this.#withdrawn.has(hint.key))
  }

  #add(name: string, key: string): Bundle {
    const hints = hintsIn(key)
    const bundle: Bundle = { key, hints, needed: hints.length }
    this.#bundles.set(name, bundle)
    for (const [oldest, { hints: forgotten }] of this.#bundles) {
      if (this.#bundles.size <= MOST) break
      this.#bundles.delete(oldest)
      for (const hint of forgotten) this.#withdrawn.delete(hint.key)
    }
    return bundle
  }

  /** Returns the key of the bundle once none of its tasks needs it. null: some may still need it. */
  withdraw({ key, bundle: name }: Hint): string | null {
    const bundle = this.#bundles.get(name!)
    // Not listed by this process: the next process that lists it deletes it.
    if (bundle === undefined) return null
    if (!this.#withdrawn.has(key)) bundle.needed--
    this.#withdrawn.add(key)
    return bundle.needed === 0 ? bundle.key : null
  }

  isWithdrawn(hint: string): boolean {
    return this.#withdrawn.has(hint)
  }
}
