/** Counts what was checked, and keeps what was found. */
import type { Invariant } from './invariants.ts'

/** A promise that was broken. */
export interface Violation {
  readonly invariant: Invariant
  /** The task concerned, if there is one. */
  readonly task: string | null
  readonly what: string
}

export class Ledger {
  /** The first `most` violations. The counts are complete. */
  readonly found: Violation[] = []
  readonly checked = new Map<Invariant, number>()
  readonly violations = new Map<Invariant, number>()
  readonly #most: number

  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most
  }

  check(invariant: Invariant, count = 1): void {
    this.checked.set(invariant, (this.checked.get(invariant) ?? 0) + count)
  }

  violate(invariant: Invariant, task: string | null, what: string): void {
    this.violations.set(invariant, (this.violations.get(invariant) ?? 0) + 1)
    if (this.found.length < this.#most) this.found.push({ invariant, task, what })
  }
}

export const sentenceOf = ({ task, what }: Violation): string => (task === null ? what : `task ${task}: ${what}`)
