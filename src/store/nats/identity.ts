/**
 * Checks that the bucket is still the store that was opened: after every reconnect, and now and then. Its epoch is the sequence of its last
 * message, which only an older state of the stream can lower.
 */
import { randomUUID } from 'node:crypto'
import type { StreamInfo } from '@nats-io/jetstream'
import { HoldfastError } from '../../core/errors.ts'
import { replacedBy, type StoreState } from '../../core/storage/restore.ts'
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
/** A server that has just restarted may not know its streams yet, and one of several may not know yet that it no longer leads. */
const RECOVERY = 15_000

export class IdentityGuard {
  readonly #connected: Connected
  readonly #subjects: Subjects
  #expected: StoreState | null = null
  #checkedAt = Number.NEGATIVE_INFINITY
  #isReconnected = false
  #recoveringSince: number | null = null
  #checking: Promise<void> | null = null
  #broken: HoldfastError | null = null

  constructor(connected: Connected, subjects: Subjects) {
    this.#connected = connected
    this.#subjects = subjects
    connected.onReconnect(() => {
      this.#checkedAt = Number.NEGATIVE_INFINITY
      this.#isReconnected = true
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
    this.#expected = { identity: made.identity, epoch: 0 }
    await this.info()
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
    const isReconnected = this.#isReconnected
    this.#isReconnected = false
    try {
      await this.#checkIdentity()
      // A server is restored while it is away. At other times the requests of the clock are often enough.
      if (isReconnected) await this.info()
    } catch (error) {
      this.#isReconnected ||= isReconnected
      throw error
    }
    this.#checkedAt = performance.now()
  }

  async #checkIdentity(): Promise<void> {
    const found = await this.#read().catch((error: unknown) => {
      if (!isStreamNotFound(error) || this.#isRecovering()) throw error
      return null
    })
    const { epoch } = this.#expected!
    this.#refuse(replacedBy(this.#expected!, { identity: found?.identity ?? null, epoch }))
    this.#recoveringSince = null
  }

  /** Facts about the bucket's stream. Each answer is compared with what was known before the question. */
  async info(): Promise<StreamInfo> {
    const { identity, epoch } = this.#expected!
    const info = await this.#connected.jsm.streams.info(this.#subjects.kv)
    const found = info.state.last_seq
    const why = replacedBy({ identity, epoch }, { identity, epoch: found })
    if (why !== null && info.config.num_replicas > 1 && this.#isRecovering())
      throw new HoldfastError('STORE_UNAVAILABLE', `bucket ${this.#subjects.bucket} shows an older state of itself`)
    this.#refuse(why)
    this.#recoveringSince = null
    this.wrote(found)
    return info
  }

  /** The stream had a message with this sequence. */
  wrote = (sequence: number): void => {
    if (this.#expected !== null && sequence > this.#expected.epoch)
      this.#expected = { ...this.#expected, epoch: sequence }
  }

  #refuse(why: string | null): void {
    if (why === null) return
    this.#broken = new HoldfastError('STORE_IDENTITY_CHANGED', `bucket ${this.#subjects.bucket} ${why}`)
    throw this.#broken
  }

  #isRecovering(): boolean {
    this.#recoveringSince ??= performance.now()
    return performance.now() - this.#recoveringSince < RECOVERY
  }

  /** Processes that know the old identity stop. This one goes on. */
  async renew(): Promise<void> {
    const made: Identity = { identity: randomUUID(), version: VERSION }
    await this.#connected.requests.write(this.#subjects.ofKey(IDENTITY), JSON.stringify(made))
    this.#expected = { ...this.#expected!, identity: made.identity }
  }
}
