/** A KV bucket as the engine's place for keys. Hints are not kept in it: they are rung as bells, or wait for later. */

import { HoldfastError } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import type { Entry, KeyValue, ListRange, Mark } from '../kv/key-value.ts'
import { READY } from '../kv/names.ts'
import type { Bells } from './bells.ts'
import type { ServerClock } from './clock.ts'
import type { Connected } from './connection.ts'
import type { Contact } from './contact.ts'
import { isNotFound, isWrongSequence } from './errors.ts'
import type { LaterHints } from './later.ts'
import { hintOf, type Subjects } from './subjects.ts'

const ASIDE = 'aside/'
/** Longer texts are kept apart, so that a move does not send them again. */
const LONG_TEXT = 65_536
/** Of a message: subject, headers and what else is not the value. */
const OVERHEAD = 1_024
/** How long a walk over many pages may go on with the list that it began with. */
const WALK = 30_000
const FLUSH = 500
const RUNG: Mark = 'rung'

interface Parts {
  readonly parts: number
}

interface Listed {
  readonly keys: readonly string[]
  readonly at: number
}

/** Told before each call; rejects when the store is not the one that it was. */
export type Guard = () => Promise<void>

export class NatsBucket implements KeyValue {
  readonly address: string
  readonly longText = LONG_TEXT
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #bells: Bells
  readonly #later: LaterHints
  readonly #clock: ServerClock
  readonly #contact: Contact
  readonly #guard: Guard
  readonly #encoder = new TextEncoder()
  readonly #listed = new Map<string, Listed>()

  constructor(
    connected: Connected,
    subjects: Subjects,
    address: string,
    parts: {
      readonly bells: Bells
      readonly later: LaterHints
      readonly clock: ServerClock
      readonly contact: Contact
      readonly guard: Guard
    },
  ) {
    this.#connected = connected
    this.#subjects = subjects
    this.address = address
    this.#bells = parts.bells
    this.#later = parts.later
    this.#clock = parts.clock
    this.#contact = parts.contact
    this.#guard = parts.guard
  }

  #call<T>(call: () => Promise<T>): Promise<T> {
    return this.#contact.run(async () => {
      await this.#guard()
      return call()
    })
  }

  get(key: string): Promise<Entry | null> {
    if (key.startsWith(READY)) return Promise.resolve(null)
    return this.#call(async () => {
      const entry = await this.#get(key)
      if (entry === null || !key.startsWith(ASIDE) || entry.value.length > OVERHEAD) return entry
      return this.#joined(key, entry)
    })
  }

  async #get(key: string): Promise<Entry | null> {
    try {
      const { text, sequence } = await this.#connected.requests.last(this.#subjects.truth, this.#subjects.ofKey(key))
      return { value: text, mark: String(sequence) }
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }

  async #joined(key: string, head: Entry): Promise<Entry | null> {
    const { parts } = JSON.parse(head.value) as Parts
    const entries = await Promise.all(Array.from({ length: parts }, (_, i) => this.#get(`${key}/${i}`)))
    if (entries.includes(null)) return null
    return { value: entries.map((entry) => entry!.value).join(''), mark: head.mark }
  }

  create(key: string, value: string): Promise<Mark | null> {
    return this.#call(async () => {
      if (key.startsWith(READY)) return this.#announce(key)
      if (key.startsWith(ASIDE) && Buffer.byteLength(value) > this.#mostBytes) return this.#createParts(key, value)
      return this.#write(key, value, 0)
    })
  }

  update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    return this.#call(() => this.#write(key, value, Number(mark)))
  }

  /** Every hint that is due has a bell; what is to happen later, also that it expires, waits in its minute. */
  async #announce(key: string): Promise<Mark> {
    const { at, expiresAt } = hintOf(key)
    const writes: Promise<void>[] = []
    if (expiresAt !== null) writes.push(this.#later.put(key, 'expiry', expiresAt))
    if (at !== expiresAt) writes.push(at > this.#clock.seen ? this.#later.put(key, 'turn', at) : this.#bells.ring(key))
    await Promise.all(writes)
    return RUNG
  }

  get #mostBytes(): number {
    return (this.#connected.nc.info?.max_payload ?? 1_048_576) - OVERHEAD
  }

  /** The parts first: a head that is there has all of them. */
  async #createParts(key: string, value: string): Promise<Mark | null> {
    const length = Math.floor(this.#mostBytes / 4)
    const parts: string[] = []
    for (let begin = 0; begin < value.length; ) {
      // Not between the two halves of a character.
      const end = isHighHalf(value.charCodeAt(begin + length - 1)) ? begin + length - 1 : begin + length
      parts.push(value.slice(begin, end))
      begin = end
    }
    await Promise.all(parts.map((part, i) => this.#write(`${key}/${i}`, part, 0)))
    return this.#write(key, JSON.stringify({ parts: parts.length } satisfies Parts), 0)
  }

  async #write(key: string, value: string, sequence: number): Promise<Mark | null> {
    const bytes = this.#encoder.encode(value)
    if (bytes.length > this.#mostBytes)
      throw new HoldfastError(
        'PAYLOAD_TOO_LARGE',
        `${bytes.length} bytes are more than this server takes in one message: raise max_payload (${this.#connected.nc.info?.max_payload}) or store less`,
        { bytes: bytes.length },
      )
    try {
      return String(await this.#connected.requests.write(this.#subjects.ofKey(key), bytes, { last: sequence }))
    } catch (error) {
      if (isWrongSequence(error)) return null
      throw error
    }
  }

  delete(keys: readonly string[]): Promise<void> {
    return this.#call(async () => {
      await Promise.all(keys.map((key) => (key.startsWith(READY) ? this.#withdraw(key) : this.#purge(key))))
    })
  }

  async #withdraw(hint: string): Promise<void> {
    await Promise.all([this.#bells.stop(hint), this.#later.forget(hint)])
  }

  /** The message itself, so that nothing is left of it: markers of deleted keys would stay for ever. */
  async #purge(key: string): Promise<void> {
    const subject = this.#subjects.ofKey(key)
    const { streams } = this.#connected.jsm
    await streams.purge(this.#subjects.truth, { filter: subject })
    if (key.startsWith(ASIDE)) await streams.purge(this.#subjects.truth, { filter: `${subject}.>` })
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

  /** In order. The server has no pages: whoever asks for the next one is given it from the same list. */
  async #keysUnder(prefix: string, isFurther: boolean): Promise<readonly string[]> {
    const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
    const known = this.#listed.get(folder)
    if (isFurther && known !== undefined && performance.now() - known.at < WALK) return known.keys
    const keys = folder.startsWith(READY) ? await this.#hintsUnder(folder) : await this.#truthsUnder(prefix)
    keys.sort()
    this.#listed.clear()
    this.#listed.set(folder, { keys, at: performance.now() })
    return keys
  }

  async #truthsUnder(prefix: string): Promise<string[]> {
    const found = await subjectsIn(this.#connected, this.#subjects.truth, this.#subjects.under(prefix))
    return found.map((subject) => this.#subjects.toKey(subject))
  }

  async #hintsUnder(folder: string): Promise<string[]> {
    const queue = folder.slice(READY.length).split('/')[0] || null
    const [bells, later] = await Promise.all([
      subjectsIn(this.#connected, this.#subjects.bells, this.#subjects.bellsIn(queue)),
      this.#later.all(queue),
    ])
    return [...new Set([...bells.map((subject) => this.#subjects.hintOfBell(subject)), ...later])]
  }

  now(): Promise<{ readonly at: Instant; readonly uncertainty: number }> {
    return this.#call(() => this.#clock.now())
  }

  async close(): Promise<void> {
    this.#bells.close()
    const { nc } = this.#connected
    // What has been said so far should be heard; but nobody waits for a server that is away.
    await Promise.race([nc.flush().catch(() => {}), new Promise((late) => setTimeout(late, FLUSH).unref())])
    await nc.close()
  }
}

const isHighHalf = (code: number): boolean => code >= 0xd800 && code < 0xdc00

/** The subjects that have messages. */
const subjectsIn = async ({ jsm }: Connected, stream: string, filter: string): Promise<string[]> => {
  const { state } = await jsm.streams.info(stream, { subjects_filter: filter })
  return Object.keys(state.subjects ?? {})
}
