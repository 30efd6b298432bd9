/**
 * Every call to the server. The client would keep what is said while the connection is away, or lose it, and tell nobody before the
 * time is up: here a call waits until there is a connection, and is open as soon as that is lost.
 */
import { HoldfastError } from '../../core/errors.ts'
import type { Connected } from './connection.ts'
import { asHoldfastError } from './errors.ts'

/** How long a call waits for a connection. */
const PATIENCE = 2_000

export class Contact {
  readonly #address: string
  #isThere = true
  /** How each call that is under way is given up. */
  readonly #underWay = new Set<() => void>()
  readonly #waiting = new Set<() => void>()

  constructor({ nc }: Connected, address: string) {
    this.#address = address
    void this.#watch(nc.status())
  }

  async #watch(status: AsyncIterable<{ readonly type: string }>): Promise<void> {
    for await (const { type } of status) {
      if (type === 'disconnect') {
        this.#isThere = false
        for (const giveUp of this.#underWay) giveUp()
      }
      if (type === 'reconnect') {
        this.#isThere = true
        for (const go of this.#waiting) go()
      }
    }
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    if (!this.#isThere) await this.#connection()
    return this.#run(call)
  }

  #run<T>(call: () => Promise<T>): Promise<T> {
    return new Promise((done, failed) => {
      const giveUp = (): void => {
        this.#underWay.delete(giveUp)
        failed(this.#lost())
      }
      this.#underWay.add(giveUp)
      call().then(
        (answer) => {
          this.#underWay.delete(giveUp)
          done(answer)
        },
        (error: unknown) => {
          this.#underWay.delete(giveUp)
          failed(asHoldfastError(error, this.#address))
        },
      )
    })
  }

  #connection(): Promise<void> {
    return new Promise((done, failed) => {
      const go = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(go)
        done()
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(go)
        failed(this.#lost())
      }, PATIENCE)
      this.#waiting.add(go)
    })
  }

  #lost(): HoldfastError {
    return new HoldfastError('STORE_UNAVAILABLE', `${this.#address}: the connection was lost`)
  }
}
