/** Deletes in the background, in batches, what nothing refers to any more. Leftovers of a crash are found by claims and sweeps. */
const MOST = 1_000

export class Discards {
  readonly #delete: (keys: readonly string[]) => Promise<void>
  /** Waiting or under way. */
  readonly #keys = new Set<string>()
  #waiting: string[] = []
  #running: Promise<void> | null = null

  constructor(deleteKeys: (keys: readonly string[]) => Promise<void>) {
    this.#delete = deleteKeys
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  add(keys: readonly string[]): void {
    for (const key of keys) {
      if (this.#keys.has(key)) continue
      this.#keys.add(key)
      this.#waiting.push(key)
    }
    // Keys that are added in the same tick share one request.
    if (this.#waiting.length > 0) this.#running ??= new Promise<void>((go) => setImmediate(go)).then(() => this.#run())
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, MOST)
      // A failure is harmless: what stays is found again.
      await this.#delete(some).catch(() => {})
      for (const key of some) this.#keys.delete(key)
    }
    this.#running = null
  }

  async finished(): Promise<void> {
    while (this.#running !== null) await this.#running
  }
}
