/** Sends the calls of one tick as a batch. If the store refuses the batch, sends them one by one. */
import { isOfTheStore } from '../../core/errors.ts'
import { soon } from '../clock.ts'

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

export class Batch<Item, Result> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>
  readonly #most: number
  #waiting: Waiting<Item, Result>[] = []

  constructor(send: (items: readonly Item[]) => Promise<readonly Result[]>, most: number) {
    this.#send = send
    this.#most = most
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      // An immediate, not a microtask: callers whose replies arrived together end up in the same batch again.
      if (this.#waiting.push({ item, resolve, reject }) === 1) soon(() => this.#flush())
    })
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (let i = 0; i < waiting.length; i += this.#most) void this.#sendSome(waiting.slice(i, i + this.#most))
  }

  async #sendSome(some: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#send(some.map(({ item }) => item))
      for (const [i, { resolve }] of some.entries()) resolve(results[i]!)
    } catch (error) {
      // The store refused the batch, so nothing was written: one bad item must not fail the others.
      if (some.length > 1 && !isOfTheStore(error)) for (const one of some) await this.#sendSome([one])
      else for (const { reject } of some) reject(error)
    }
  }
}
