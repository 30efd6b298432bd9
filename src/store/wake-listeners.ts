/** The listeners for work in a store. The source of wake-ups is started with the first listener and stopped with the last. */
import type { WakeListener } from './store.ts'

/** Who is called when there is new work. */
export class WakeListeners {
  readonly #listeners = new Set<WakeListener>()
  readonly #watch: (isOn: boolean) => void

  constructor(watch: (isOn: boolean) => void = () => {}) {
    this.#watch = watch
  }

  get size(): number {
    return this.#listeners.size
  }

  add(listener: WakeListener): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#watch(true)
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#watch(false)
    }
  }

  /** null means that any queue may have work. */
  notify(queues: readonly string[] | null): void {
    for (const listener of this.#listeners) listener(queues)
  }

  clear(): void {
    if (this.#listeners.size === 0) return
    this.#listeners.clear()
    this.#watch(false)
  }
}
