/**
 * The leases that workers of this client hold. If one lapses while the event loop is blocked, this process does not take it from
 * itself: the handler is still running here, and its renewal or its end is about to be written.
 */
export class HeldLeases {
  readonly #holders = new Set<(token: string) => boolean>()

  /** Returns a function that removes it. */
  add(holds: (token: string) => boolean): () => void {
    this.#holders.add(holds)
    return () => void this.#holders.delete(holds)
  }

  has(token: string): boolean {
    for (const holds of this.#holders) if (holds(token)) return true
    return false
  }
}
