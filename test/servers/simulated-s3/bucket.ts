/** Objects of one bucket in memory, with their keys in order. */
import { hash } from 'node:crypto'

export interface StoredObject {
  readonly body: Buffer
  readonly etag: string
  readonly writtenAt: number
}

export interface ListPage {
  readonly keys: readonly string[]
  readonly prefixes: readonly string[]
  /** Where the next page begins; null: this was the last. */
  readonly next: string | null
}

export interface ListRange {
  readonly prefix: string
  readonly delimiter: string
  readonly after: string
  readonly limit: number
}

export class Bucket {
  readonly objects = new Map<string, StoredObject>()
  readonly #sorted: string[] = []

  put(key: string, body: Buffer, writtenAt: number): StoredObject {
    if (!this.objects.has(key)) this.#sorted.splice(this.#indexFrom(key), 0, key)
    const object = { body, etag: `"${hash('md5', body)}"`, writtenAt }
    this.objects.set(key, object)
    return object
  }

  delete(key: string): void {
    if (this.objects.delete(key)) this.#sorted.splice(this.#indexFrom(key), 1)
  }

  /** By key: what is kept, as text. */
  contents(prefix: string): Record<string, string> {
    const keys = this.#sorted.filter((key) => key.startsWith(prefix))
    return Object.fromEntries(keys.map((key) => [key, this.objects.get(key)!.body.toString()]))
  }

  list({ prefix, delimiter, after, limit }: ListRange): ListPage {
    const [keys, prefixes]: [string[], string[]] = [[], []]
    let last = after
    let at = after > prefix ? this.#indexAfter(after) : this.#indexFrom(prefix)
    for (; at < this.#sorted.length; at++) {
      const key = this.#sorted[at]!
      if (!key.startsWith(prefix)) break
      if (keys.length + prefixes.length >= limit) return { keys, prefixes, next: last }
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
      if (end === -1) {
        keys.push(key)
        last = key
        continue
      }
      const common = key.slice(0, end + delimiter.length)
      // A page that ended with this common prefix must not begin with it again.
      if (after.startsWith(common)) continue
      prefixes.push(common)
      last = `${common}\uffff`
      at = this.#indexFrom(last) - 1
    }
    return { keys, prefixes, next: null }
  }

  /** In an order that has nothing to do with the names; `after` is the last key of the page before. */
  listUnordered({ prefix, limit }: ListRange, startAfter: string, after: string): ListPage {
    const all = this.#sorted.filter((key) => key.startsWith(prefix) && key > startAfter)
    const ranked = all.map((key) => ({ key, rank: hash('md5', key) })).sort((a, b) => (a.rank < b.rank ? -1 : 1))
    const rest = after === '' ? ranked : ranked.filter(({ rank }) => rank > hash('md5', after))
    const keys = rest.slice(0, limit).map(({ key }) => key)
    return { keys, prefixes: [], next: rest.length > limit ? keys.at(-1)! : null }
  }

  /** Of the first key that is not before this text. */
  #indexFrom(text: string): number {
    let [low, high] = [0, this.#sorted.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#sorted[middle]! < text) low = middle + 1
      else high = middle
    }
    return low
  }

  #indexAfter(key: string): number {
    const at = this.#indexFrom(key)
    return this.#sorted[at] === key ? at + 1 : at
  }
}
