/** An AbortSignal with a typed reason. It is created on first access: most handlers never use theirs. */
import { AbortedError, type AbortReason } from '../handler.ts'

export class AbortOnce {
  #controller: AbortController | null = null
  #reason: AbortReason | null = null

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#reason !== null) this.#controller.abort(new AbortedError(this.#reason))
    }
    return this.#controller.signal
  }

  /** Why it was aborted; null: it was not. */
  get reason(): AbortReason | null {
    return this.#reason
  }

  /** The first reason stands. */
  abort(reason: AbortReason): void {
    if (this.#reason !== null) return
    this.#reason = reason
    this.#controller?.abort(new AbortedError(reason))
  }
}
