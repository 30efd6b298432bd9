/**
 * Runs every call to the server. The client buffers calls while the connection is down and reports the loss only after a
 * timeout. Here a call waits until there is a connection, and rejects as soon as the connection is lost.
 */
import { HoldfastError } from '../../../core/errors.ts'
import type { Connected } from './connection.ts'
import { asHoldfastError, isRefusedLogin } from './errors.ts'

/** How long a call waits for a connection. */
const PATIENCE = 2_000

export class Contact {
  readonly #address: string
  #isThere = true
  #why = ''
  /** How to reject each call that is under way. */
  readonly #underWay = new Set<() => void>()
  readonly #waiting = new Set<() => void>()

  constructor({ nc }: Connected, address: string) {
    this.#address = address
    void this.#watch(nc.status())
  }

  async #watch(status: AsyncIterable<{ readonly type: string; readonly error?: Error }>): Promise<void> {
    for await (const { type, error } of status) {
      // The server refuses the login: credentials have changed or expired.
      if (type === 'error' && isRefusedLogin(error)) this.#why = `: ${error!.message}`
      if (type === 'disconnect') {
        this.#isThere = false
        for (const giveUp of this.#underWay) giveUp()
      }
      if (type === 'reconnect') {
        this.#isThere = true
        this.#why = ''
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
    return new HoldfastError('STORE_UNAVAILABLE', `${this.#address}: the connection was lost${this.#why}`)
  }
}
