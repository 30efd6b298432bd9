/**
 * The leases that workers of this client hold. One that lapsed while the event loop stood still is not taken from ourselves: its
 * handler runs here, and its renewal or its end is about to be written.
 */
export class HeldLeases {
  readonly #holders = new Set<(token: string) => boolean>()

  /** Returns the way to take it back. */
  add(holds: (token: string) => boolean): () => void {
    this.#holders.add(holds)
    return () => void this.#holders.delete(holds)
  }

  has(token: string): boolean {
    for (const holds of this.#holders) if (holds(token)) return true
    return false
  }
}
