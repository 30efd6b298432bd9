/** What one statement about a store looks like. Data: any runner can walk it, and so can the author of another store. */
import type { Capability, Store } from '../../store/store.ts'

export interface Case {
  /** A sentence about behaviour; unique in the whole suite. */
  readonly name: string
  /** A store that lacks one of these is not asked. */
  readonly needs?: readonly Capability[]
  /** Given an empty store of its own; throws when the store does otherwise. The caller closes the store. */
  run(store: Store): Promise<void>
}
