/** Checks that the bucket is still the store that was opened: after every reconnect, and now and then. */
import { randomUUID } from 'node:crypto'
import { HoldfastError } from '../../core/errors.ts'
import { refuseNewer } from '../../core/storage/schema-version.ts'
import { IDENTITY } from '../kv/records/names.ts'
import type { Connected } from './connection/connection.ts'
import { isNotFound, isStreamNotFound, isWrongSequence } from './connection/errors.ts'
import type { Subjects } from './subjects.ts'

interface Identity {
  readonly identity: string
  readonly version: number
}

const VERSION = 1
const EVERY = 5_000
/** A server that has just restarted may not know its streams yet. */
const RECOVERY = 15_000

export class IdentityGuard {
  readonly #connected: Connected
  readonly #subjects: Subjects
  #expected: string | null = null
  #checkedAt = Number.NEGATIVE_INFINITY
  #missingSince: number | null = null
  #checking: Promise<void> | null = null
  #broken: HoldfastError | null = null

  constructor(connected: Connected, subjects: Subjects) {
    this.#connected = connected
    this.#subjects = subjects
    connected.onReconnect(() => {
      this.#checkedAt = Number.NEGATIVE_INFINITY
    })
  }

  /** Creates the identity of a new store, or remembers that of an existing one. */
  async expect(mayMake: boolean): Promise<void> {
    const found = await this.#read()
    if (found === null && !mayMake)
      throw new HoldfastError(
        'STORE_CORRUPT',
        `bucket ${this.#subjects.bucket} has no ${IDENTITY}: it is not Holdfast's`,
      )
    const made = found ?? (await this.#make())
    refuseNewer(`bucket ${this.#subjects.bucket}`, made.version, VERSION)
    this.#expected = made.identity
    this.#checkedAt = performance.now()
  }

  async #make(): Promise<Identity> {
    const made: Identity = { identity: randomUUID(), version: VERSION }
    try {
      await this.#connected.requests.write(this.#subjects.ofKey(IDENTITY), JSON.stringify(made), { last: 0 })
      return made
    } catch (error) {
      if (!isWrongSequence(error)) throw error
      return (await this.#read())!
    }
  }

  async #read(): Promise<Identity | null> {
    try {
      const query = { last_by_subj: this.#subjects.ofKey(IDENTITY) }
      const message = await this.#connected.jsm.streams.getMessage(this.#subjects.kv, query)
      return message === null ? null : message.json<Identity>()
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }

  check = async (): Promise<void> => {
    if (this.#broken !== null) throw this.#broken
    if (this.#expected === null || performance.now() - this.#checkedAt < EVERY) return
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null
    })
    await this.#checking
  }

  async #check(): Promise<void> {
    const found = await this.#read().catch((error: unknown) => {
      if (!isStreamNotFound(error) || this.#isRecovering()) throw error
      return null
    })
    if (found?.identity !== this.#expected) {
      this.#broken = new HoldfastError(
        'STORE_IDENTITY_CHANGED',
        `bucket ${this.#subjects.bucket} ${found === null ? 'has vanished' : 'is now another Holdfast store'}`,
      )
      throw this.#broken
    }
    this.#missingSince = null
    this.#checkedAt = performance.now()
  }

  #isRecovering(): boolean {
    this.#missingSince ??= performance.now()
    return performance.now() - this.#missingSince < RECOVERY
  }
}
