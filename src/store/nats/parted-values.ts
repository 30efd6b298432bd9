/** Large values in the bucket. A value that is too large for one message is stored in parts. */
import type { LargeValueAccess } from '../kv/access/key-value.ts'
import type { NatsBucket } from './bucket.ts'

/** In characters. A large value is longer, the head of one in parts is shorter. */
const LONGEST_HEAD = 1_024

/** Stored under the key of a value in parts. */
interface Head {
  readonly parts: number
}

export class PartedValues implements LargeValueAccess {
  readonly #bucket: NatsBucket

  constructor(bucket: NatsBucket) {
    this.#bucket = bucket
  }

  async get(key: string): Promise<string | null> {
    const entry = await this.#bucket.get(key)
    if (entry === null || entry.value.length > LONGEST_HEAD) return entry?.value ?? null
    const { parts } = JSON.parse(entry.value) as Head
    const entries = await Promise.all(Array.from({ length: parts }, (_, i) => this.#bucket.get(`${key}/${i}`)))
    return entries.includes(null) ? null : entries.map((part) => part!.value).join('')
  }

  /** Writes the parts first, so that a head never lacks one. A repeated write finds its keys there and changes nothing. */
  async create(key: string, value: string): Promise<void> {
    const most = this.#bucket.mostBytes
    if (Buffer.byteLength(value) <= most) {
      await this.#bucket.create(key, value)
      return
    }
    const parts = split(value, Math.floor(most / 4))
    await Promise.all(parts.map((part, i) => this.#bucket.create(`${key}/${i}`, part)))
    await this.#bucket.create(key, JSON.stringify({ parts: parts.length } satisfies Head))
  }

  async delete(keys: readonly string[]): Promise<void> {
    await this.#bucket.delete(keys)
    await this.#bucket.deleteUnder(keys)
  }
}

const split = (value: string, length: number): string[] => {
  const parts: string[] = []
  for (let begin = 0; begin < value.length; ) {
    // Keeps surrogate pairs together.
    const end = isHighSurrogate(value.charCodeAt(begin + length - 1)) ? begin + length - 1 : begin + length
    parts.push(value.slice(begin, end))
    begin = end
  }
  return parts
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00
