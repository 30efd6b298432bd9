/** The promises that the simulation checks, and what it reports when one is broken. */
import type { Invariant } from '../../../src/testing/verify/invariants.ts'

export { INVARIANTS, type Invariant } from '../../../src/testing/verify/invariants.ts'

export interface Violation {
  readonly invariant: Invariant
  readonly what: string
  /** The task that it is about, if it is about one. */
  readonly task?: string
  readonly step: number
  /** Milliseconds of virtual time. */
  readonly at: number
}
