/** Callers that wait until a worker has nothing to do. */
import type { Clock } from '../clock.ts'

export class IdleWaiters {
  readonly #clock: Clock
  #waiting: (() => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isAwaited(): boolean {
    return this.#waiting.length > 0
  }

  /** Checks all waiting callers again; those that are still busy keep waiting. */
  tell(): void {
    for (const told of this.#waiting.splice(0)) told()
  }

  next(): Promise<void> {
    return new Promise((done) => this.#waiting.push(done))
  }

  /** Waits while `isBusy` returns true, at most for `timeout`. */
  until(timeout: number, isBusy: () => boolean): Promise<void> {
    if (!isBusy()) return Promise.resolve()
    return new Promise((done) => {
      const cancel = this.#clock.after(timeout, done)
      const look = (): void => {
        if (isBusy()) {
          this.#waiting.push(look)
          return
        }
        cancel()
        done()
      }
      this.#waiting.push(look)
    })
  }
}
