/** Checks that this is still the store that we connected to: on every new connection, and periodically on existing ones. */
import { HoldfastError } from '../../core/errors.ts'
import { replacedBy, type StoreState } from '../../core/storage/restore.ts'
import type { Executor, Guard } from './connection.ts'
import { growEpoch, readState, schemaVersion } from './schema.ts'

/** How often the identity is checked, because a schema may be dropped and created again under an open connection. The epoch grows as often. */
const EVERY = 5_000
/** No privilege to write it, or a read-only server: other processes advance the epoch. */
const MAY_NOT_WRITE: ReadonlySet<unknown> = new Set(['42501', '25006', 'STORE_READ_ONLY'])

export class IdentityGuard implements Guard {
  readonly #schema: string
  #state: StoreState | null = null
  #checkedAt = Number.NEGATIVE_INFINITY
  /** The last check failed: until one succeeds, every call checks, also beside a check that is under way. */
  #hasFailed = false

  constructor(schema: string) {
    this.#schema = schema
  }

  /** Remembers the identity that must hold from now on. */
  async expect(executor: Executor): Promise<void> {
    this.#state = await readState(executor, this.#schema)
    await this.#grow(executor)
    this.#checkedAt = performance.now()
  }

  get isDue(): boolean {
    return this.#state !== null && (this.#hasFailed || performance.now() - this.#checkedAt > EVERY)
  }

  async check(executor: Executor): Promise<void> {
    if (this.#state === null) return
    const isTime = this.isDue
    // Set before the query, so that concurrent calls do not all check.
    this.#checkedAt = performance.now()
    try {
      await this.#compare(executor, isTime)
      this.#hasFailed = false
    } catch (error) {
      this.#hasFailed = true
      throw error
    }
  }

  async #compare(executor: Executor, isTime: boolean): Promise<void> {
    // As known before the question: while its answer is on the way, another connection may see the epoch grow.
    const before = this.#state!
    const isThere = (await schemaVersion(executor, this.#schema)) > 0
    const found = isThere ? await readState(executor, this.#schema) : { identity: null, epoch: 0 }
    const why = replacedBy(before, found)
    if (why !== null) throw new HoldfastError('STORE_IDENTITY_CHANGED', `the database ${why}`)
    this.#see(found.epoch)
    if (isTime) await this.#grow(executor)
  }

  /** One small write every five seconds of use, so that a restored older state has an older epoch. */
  async #grow(executor: Executor): Promise<void> {
    try {
      this.#see(await growEpoch(executor, this.#schema))
    } catch (error) {
      if (!MAY_NOT_WRITE.has((error as { readonly code?: unknown }).code)) throw error
    }
  }

  #see(epoch: number): void {
    this.#state = { ...this.#state!, epoch: Math.max(this.#state!.epoch, epoch) }
  }
}
