/** One statement about a store, as data, so that any test runner can execute it. */
import type { Capability, Store } from '../../store/store.ts'

/** One conformance case: a sentence about every store, and the test of it. */
export interface Case {
  /** A sentence about behaviour; unique in the suite. */
  readonly name: string
  /** Skipped for a store that lacks one of these. */
  readonly needs?: readonly Capability[]
  /** Gets a new, empty store and throws if the store behaves differently. The caller closes the store. */
  run(store: Store): Promise<void>
}
