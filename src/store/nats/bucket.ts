/** A KV bucket as the engine's key-value store. */
import { HoldfastError } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import type { Entry, KeyValue, LargeValueAccess, ListRange, Mark } from '../kv/access/key-value.ts'
import type { ServerClock } from './clock.ts'
import type { Connected } from './connection/connection.ts'
import type { Contact } from './connection/contact.ts'
import { isNotFound, isWrongSequence } from './connection/errors.ts'
import { PartedValues } from './parted-values.ts'
import type { Subjects } from './subjects.ts'

const INLINE_LIMIT = 65_536
/** Bytes of a message for its subject, headers and the like. */
const OVERHEAD = 1_024
/** How long the next pages of a list come from the keys of the first. */
const LIST_LIFE = 30_000
const FLUSH = 500

interface Listed {
  readonly keys: readonly string[]
  readonly at: number
}

interface Parts {
  readonly connected: Connected
  readonly subjects: Subjects
  readonly clock: ServerClock
  readonly contact: Contact
  /** Rejects when the store is no longer the one that was opened. */
  checkIdentity(): Promise<void>
  /** The stream acknowledged a message under this sequence. */
  wrote(sequence: number): void
}

export class NatsBucket implements KeyValue {
  readonly address: string
  readonly inlineLimit = INLINE_LIMIT
  readonly large: LargeValueAccess = new PartedValues(this)
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #clock: ServerClock
  readonly #contact: Contact
  readonly #checkIdentity: () => Promise<void>
  readonly #wrote: (sequence: number) => void
  readonly #encoder = new TextEncoder()
  readonly #listed = new Map<string, Listed>()

  constructor(address: string, parts: Parts) {
    this.address = address
    this.#connected = parts.connected
    this.#subjects = parts.subjects
    this.#clock = parts.clock
    this.#contact = parts.contact
    this.#checkIdentity = parts.checkIdentity
    this.#wrote = parts.wrote
  }

  #call<T>(call: () => Promise<T>): Promise<T> {
    return this.#contact.run(async () => {
      await this.#checkIdentity()
      return call()
    })
  }

  get(key: string): Promise<Entry | null> {
    return this.#call(() => this.#get(key))
  }

  async #get(key: string): Promise<Entry | null> {
    try {
      const { text, sequence } = await this.#connected.requests.last(this.#subjects.kv, this.#subjects.ofKey(key))
      return { value: text, mark: String(sequence) }
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }

  create(key: string, value: string): Promise<Mark | null> {
    return this.#call(() => this.#write(key, value, 0))
  }

  update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    return this.#call(() => this.#write(key, value, Number(mark)))
  }

  /** Of a value in one message. */
  get mostBytes(): number {
    return (this.#connected.nc.info?.max_payload ?? 1_048_576) - OVERHEAD
  }

  async #write(key: string, value: string, sequence: number): Promise<Mark | null> {
    const bytes = this.#encoder.encode(value)
    if (bytes.length > this.mostBytes)
      throw new HoldfastError(
        'PAYLOAD_TOO_LARGE',
        `${bytes.length} bytes are more than this server accepts in one message: raise max_payload (${this.#connected.nc.info?.max_payload}) or store less`,
        { bytes: bytes.length },
      )
    try {
      const written = await this.#connected.requests.write(this.#subjects.ofKey(key), bytes, { last: sequence })
      this.#wrote(written)
      return String(written)
    } catch (error) {
      if (isWrongSequence(error)) return null
      throw error
    }
  }

  delete(keys: readonly string[]): Promise<void> {
    return this.#purge(keys.map((key) => this.#subjects.ofKey(key)))
  }

  /** Deletes all keys in these folders. */
  deleteUnder(folders: readonly string[]): Promise<void> {
    return this.#purge(folders.map((folder) => this.#subjects.under(`${folder}/`)))
  }

  /** Purges the messages themselves: the delete markers of a KV bucket would stay forever. */
  #purge(subjects: readonly string[]): Promise<void> {
    const { streams } = this.#connected.jsm
    return this.#call(async () => {
      await Promise.all(subjects.map((filter) => streams.purge(this.#subjects.kv, { filter })))
    })
  }

  list(prefix: string, { after, limit }: ListRange): Promise<readonly string[]> {
    return this.#call(async () => {
      const keys = await this.#keysUnder(prefix, after !== undefined)
      const found: string[] = []
      for (const key of keys) {
        if (found.length === limit) break
        if (key.startsWith(prefix) && (after === undefined || key > after)) found.push(key)
      }
      return found
    })
  }

  /** Sorted. The server has no pages, so the keys are kept for the pages that follow. */
  async #keysUnder(prefix: string, isFurther: boolean): Promise<readonly string[]> {
    const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
    const known = this.#listed.get(folder)
    if (isFurther && known !== undefined && performance.now() - known.at < LIST_LIFE) return known.keys
    const subjects = await this.#connected.subjectsIn(this.#subjects.kv, this.#subjects.under(prefix))
    const keys = subjects.map((subject) => this.#subjects.toKey(subject)).sort()
    this.#listed.clear()
    this.#listed.set(folder, { keys, at: performance.now() })
    return keys
  }

  now(): Promise<{ readonly at: Instant; readonly uncertainty: number }> {
    return this.#call(() => this.#clock.now())
  }

  async close(): Promise<void> {
    const { nc } = this.#connected
    // Sends what was published, but does not wait for a server that is away.
    await Promise.race([nc.flush().catch(() => {}), new Promise((late) => setTimeout(late, FLUSH).unref())])
    await nc.close()
  }
}
