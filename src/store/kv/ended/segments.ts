/** Segments as objects: written once, never changed, and cached in memory. */
import type { Instant } from '../../../core/task.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { corrupt } from '../records/bodies.ts'
import {
  ENDED,
  type EndedEntry,
  type IndexedTask,
  keysFrom,
  parseSegment,
  type SegmentName,
  segmentFor,
  statusIdentityOf,
} from './segment-names.ts'

/** Entries in memory, over all segments. */
const MOST_CACHED = 50_000
/** Entries of one segment: about 120 KB. */
export const MOST_ENTRIES = 1_000

/** The segment was merged after it was listed. The caller lists again. */
export class SegmentGone extends Error {}

/** How often an entry was added to the index, and how often removed. */
export interface Occurrences {
  readonly added: number
  readonly removed: number
}

type Row = readonly [string, number, string, Instant, Instant | null, Instant]

export class Segments {
  readonly #kv: RetryingKeyValue
  readonly #cache = new Map<string, readonly IndexedTask[]>()
  #cached = 0

  constructor(kv: RetryingKeyValue) {
    this.#kv = kv
  }

  /** In order of their first minute. `from`: only segments that begin in the minute of this instant or later. */
  async names(from?: Instant): Promise<SegmentName[]> {
    const names: SegmentName[] = []
    for await (const keys of this.#kv.pages(ENDED, from === undefined ? undefined : keysFrom(from)))
      for (const key of keys) {
        const name = parseSegment(key)
        if (name !== null) names.push(name)
      }
    return names
  }

  /** Rejects with SegmentGone if the segment no longer exists. */
  async read(name: SegmentName): Promise<readonly IndexedTask[]> {
    const known = this.#cache.get(name.key)
    if (known !== undefined) {
      this.#cache.delete(name.key)
      this.#cache.set(name.key, known)
      return known
    }
    const entry = await this.#kv.get(name.key)
    if (entry === null) throw new SegmentGone(name.key)
    const entries = decode(name, entry.value)
    this.#remember(name.key, entries)
    return entries
  }

  /** The entries must share status and queue. Durable when this resolves. */
  async write(kind: SegmentName['kind'], entries: readonly IndexedTask[]): Promise<SegmentName> {
    const name = segmentFor(kind, entries)
    await this.#kv.create(name.key, encode(entries))
    this.#remember(name.key, entries)
    return name
  }

  /**
   * Segments of this process with no entry left. Only young ones: an older segment may have been merged, and deleting it
   * would not remove its entries.
   */
  emptied(
    removed: readonly IndexedTask[],
    since: Instant,
  ): { readonly names: readonly SegmentName[]; readonly rest: IndexedTask[] } {
    const rest = new Map(removed.map((entry) => [statusIdentityOf(entry), entry]))
    const names: SegmentName[] = []
    for (const [key, entries] of this.#cache) {
      const identities = entries.map(statusIdentityOf)
      const name = parseSegment(key)!
      if (name.kind !== 'added' || name.to < since || !identities.every((identity) => rest.has(identity))) continue
      names.push(name)
      this.#cache.delete(key)
      this.#cached -= entries.length
      for (const identity of identities) rest.delete(identity)
    }
    return { names, rest: [...rest.values()] }
  }

  async delete(names: readonly SegmentName[]): Promise<void> {
    await this.#kv.delete(names.map(({ key }) => key))
  }

  /** How often each entry was added and removed, according to these segments. */
  async occurrences(names: readonly SegmentName[], wanted: readonly IndexedTask[]): Promise<Occurrences[]> {
    const near = names.filter((name) => wanted.some((one) => mayHold(name, one)))
    const read = await Promise.all(near.map((name) => this.read(name)))
    const occurrences = new Map(wanted.map((one) => [statusIdentityOf(one), { added: 0, removed: 0 }]))
    for (const [i, { kind }] of near.entries())
      for (const entry of read[i]!) {
        const seen = occurrences.get(statusIdentityOf(entry))
        if (seen !== undefined) seen[kind]++
      }
    return wanted.map((one) => occurrences.get(statusIdentityOf(one))!)
  }

  #remember(key: string, entries: readonly IndexedTask[]): void {
    if (entries.length > MOST_CACHED || this.#cache.has(key)) return
    this.#cache.set(key, entries)
    this.#cached += entries.length
    for (const [oldest, { length }] of this.#cache) {
      if (this.#cached <= MOST_CACHED) break
      this.#cache.delete(oldest)
      this.#cached -= length
    }
  }
}

export const mayHold = ({ status, queue, from, to, low, high }: SegmentName, one: IndexedTask): boolean =>
  status === one.status &&
  queue === one.queue &&
  from <= one.updatedAt &&
  one.updatedAt <= to &&
  low <= one.id &&
  one.id <= high

const encode = (entries: readonly EndedEntry[]): string =>
  JSON.stringify({
    entries: entries.map(
      ({ id, revision, type, createdAt, completedAt, updatedAt }): Row => [
        id,
        revision,
        type,
        createdAt,
        completedAt,
        updatedAt,
      ],
    ),
  })

const decode = ({ key, status, queue }: SegmentName, text: string): IndexedTask[] => {
  try {
    const { entries } = JSON.parse(text) as { readonly entries: readonly Row[] }
    return entries.map(([id, revision, type, createdAt, completedAt, updatedAt]) => ({
      id,
      revision,
      type,
      createdAt,
      completedAt,
      updatedAt,
      status,
      queue,
    }))
  } catch {
    throw corrupt(key, 'is not what Holdfast writes')
  }
}
