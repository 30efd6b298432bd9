/** The stored result of the proof. The proof runs once, again when the result is old, and when `doctor` asks for it. */
import { createHash, randomUUID } from 'node:crypto'
import { HoldfastError, isContactLost, isHoldfastError } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import type { Entry } from '../kv/access/key-value.ts'
import { RetryingKeyValue } from '../kv/access/retrying-key-value.ts'
import { PROOF } from '../kv/records/names.ts'
import type { S3Place } from './address.ts'
import { Disproof, type ProvedKeyValue, prove } from './proof.ts'

/** Increased with every change to proof.ts that requires more of a server. */
const VERSION = 1
/** The settings of a bucket can change: some gateways stop honouring conditions when versioning is enabled. */
const DAY = 86_400_000
const READ_EVERY = 3_600_000
const AGAIN_AFTER = 300_000

interface Proved {
  readonly version: number
  /** By the server's clock. */
  readonly at: Instant
  readonly etagsAreBare: boolean
}

/** By server and bucket: other stores of this process need no proof of their own. */
const provedHere = new Map<string, Proved>()

export class ProofRecord {
  readonly #kv: ProvedKeyValue
  readonly #retrying: RetryingKeyValue
  readonly #prove: (kv: ProvedKeyValue) => Promise<void>
  readonly #mono: () => number
  readonly #where: string
  readonly #key: string
  #readAt: number
  #broken: HoldfastError | null = null

  constructor(
    kv: ProvedKeyValue,
    { endpoint, bucket }: S3Place,
    /** Tests pass their own clock and proof. */
    { proving = prove, mono = () => performance.now() }: { proving?: typeof prove; mono?: () => number } = {},
  ) {
    this.#kv = kv
    this.#retrying = new RetryingKeyValue(kv)
    this.#prove = proving
    this.#mono = mono
    this.#where = `${endpoint} ${bucket}`
    // A record that was copied to another server does not count there.
    this.#key = `${PROOF}${createHash('sha256').update(this.#where).digest('hex').slice(0, 16)}.json`
    this.#readAt = mono()
  }

  /** Reads the stored result. Writes nothing. */
  async read(): Promise<boolean> {
    const { proved } = await this.#read()
    if (proved === null) return false
    this.#kv.etagsAreBare = proved.etagsAreBare
    return true
  }

  /**
   * Proves the server if the store has no record. A role that may only read cannot prove anything and need not: all its
   * writes are refused.
   */
  async ensure(): Promise<void> {
    const known = provedHere.get(this.#where)
    try {
      if (known === undefined) await this.renew()
      else {
        this.#kv.etagsAreBare = known.etagsAreBare
        await this.#write(known)
      }
    } catch (error) {
      if (!mayNotWrite(error)) throw error
    }
  }

  /** Rejects with a Disproof, and deletes the record, if the server does not honour what is needed. */
  async renew(): Promise<void> {
    try {
      await this.#prove(this.#kv)
    } catch (error) {
      if (error instanceof Disproof) await this.#forget()
      throw error
    }
    const { at } = await this.#retrying.now()
    const proved: Proved = { version: VERSION, at: Math.floor(at), etagsAreBare: this.#kv.etagsAreBare }
    provedHere.set(this.#where, proved)
    await this.#write(proved)
  }

  /**
   * Called often by working processes, and nearly always sends nothing. Rejects with STORE_UNSAFE, and then for every later
   * call.
   */
  async check(): Promise<void> {
    if (this.#broken !== null) throw this.#broken
    if (this.#mono() - this.#readAt < READ_EVERY) return
    this.#readAt = this.#mono()
    try {
      const { proved } = await this.#read()
      const { at } = await this.#retrying.now()
      if (proved === null || at - proved.at > DAY) await this.renew()
    } catch (error) {
      if (isContactLost(error)) this.#readAt += AGAIN_AFTER - READ_EVERY
      else if (error instanceof Disproof) throw this.#unsafe(error)
      else if (!mayNotWrite(error)) throw error
    }
  }

  #unsafe(error: HoldfastError): HoldfastError {
    this.#broken = new HoldfastError(
      'STORE_UNSAFE',
      `${error.message}. It did when this store was proved: has versioning been enabled, or the server been replaced?`,
      {},
      error,
    )
    return this.#broken
  }

  async #read(): Promise<{ readonly entry: Entry | null; readonly proved: Proved | null }> {
    const entry = await this.#retrying.get(this.#key)
    return { entry, proved: entry === null ? null : provedIn(entry.value) }
  }

  /** Another process that writes the record at the same moment has found the same. */
  async #write(proved: Proved): Promise<void> {
    const { entry } = await this.#read()
    const value = JSON.stringify({ ...proved, nonce: randomUUID() })
    if (entry === null) await this.#retrying.create(this.#key, value)
    else await this.#retrying.update(this.#key, value, entry.mark)
  }

  /** Other working processes find out within the hour, and new ones at once. */
  async #forget(): Promise<void> {
    provedHere.delete(this.#where)
    await this.#retrying.delete([this.#key]).catch(() => {})
  }
}

/** null: from another release, or not a record of Holdfast. */
const provedIn = (text: string): Proved | null => {
  try {
    const proved = JSON.parse(text) as Proved | null
    return proved?.version === VERSION ? proved : null
  } catch {
    return null
  }
}

const mayNotWrite = (error: unknown): boolean =>
  isHoldfastError(error, 'STORE_READ_ONLY') && error.details['right'] === 's3:PutObject'
