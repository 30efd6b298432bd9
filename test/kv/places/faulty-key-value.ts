/** A key-value store that fails at a given call: before it, after it, or from then on. */
import { HoldfastError } from '../../../src/core/errors.ts'
import type { Entry, KeyValue, ListRange, Mark } from '../../../src/store/kv/access/key-value.ts'

/**
 * `crash`: the process ends before that call. `refused`: the call does not reach the server. `unheard`: it does, and the
 * reply is lost.
 */
export type Fault = 'crash' | 'refused' | 'unheard'

export class Crashed extends Error {}

export class FaultyKeyValue implements KeyValue {
  readonly address: string
  readonly inlineLimit: number
  readonly longestHint?: number
  readonly #kv: KeyValue
  readonly #fault: Fault
  #left: number
  #isDead = false

  /** `at`: the number of the call, from 1. */
  constructor(kv: KeyValue, fault: Fault, at: number) {
    this.#kv = kv
    this.#fault = fault
    this.#left = at
    this.address = kv.address
    this.inlineLimit = kv.inlineLimit
    if (kv.longestHint !== undefined) this.longestHint = kv.longestHint
  }

  /** Whether that call was reached. */
  get hasFailed(): boolean {
    return this.#left <= 0
  }

  async #call<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isDead) throw new Crashed()
    if (--this.#left !== 0) return call()
    if (this.#fault === 'crash') {
      this.#isDead = true
      throw new Crashed()
    }
    if (this.#fault === 'unheard') await call()
    throw new HoldfastError('STORE_UNAVAILABLE', 'planted')
  }

  get(key: string): Promise<Entry | null> {
    return this.#call(() => this.#kv.get(key))
  }
  create(key: string, value: string): Promise<Mark | null> {
    return this.#call(() => this.#kv.create(key, value))
  }
  update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    return this.#call(() => this.#kv.update(key, value, mark))
  }
  delete(keys: readonly string[]): Promise<void> {
    return this.#call(() => this.#kv.delete(keys))
  }
  list(prefix: string, range: ListRange): Promise<readonly string[]> {
    return this.#call(() => this.#kv.list(prefix, range))
  }
  now(): Promise<{ readonly at: number; readonly uncertainty: number }> {
    return this.#kv.now()
  }
  close(): Promise<void> {
    return this.#kv.close()
  }
}
