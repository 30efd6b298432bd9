/** Is this still the store that we connected to? Asked of every new connection, and now and then of the old ones. */
import { HoldfastError } from '../../core/errors.ts'
import type { Executor, Guard } from './connection.ts'
import { readMeta, schemaVersion } from './schema.ts'

/** A schema may be dropped and made anew under a connection that lives on. */
const EVERY = 5_000

export class IdentityGuard implements Guard {
  readonly #schema: string
  #identity: string | null = null
  #checkedAt = Number.NEGATIVE_INFINITY

  constructor(schema: string) {
    this.#schema = schema
  }

  /** From now on it must be this one. */
  expect(identity: string): void {
    this.#identity = identity
    this.#checkedAt = performance.now()
  }

  get isDue(): boolean {
    return this.#identity !== null && performance.now() - this.#checkedAt > EVERY
  }

  async check(executor: Executor): Promise<void> {
    if (this.#identity === null) return
    // At once, so that calls beside this one do not all ask.
    this.#checkedAt = performance.now()
    const isThere = (await schemaVersion(executor, this.#schema)) > 0
    const found = isThere ? await readMeta(executor, this.#schema, 'identity') : null
    if (found === this.#identity) return
    this.#checkedAt = Number.NEGATIVE_INFINITY
    throw new HoldfastError('STORE_IDENTITY_CHANGED', 'the database now holds another Holdfast store, or none')
  }
}
