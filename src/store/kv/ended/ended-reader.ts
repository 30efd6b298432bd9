/** Answers queries about ended tasks from the index: ids in order, counts, and recent changes. */
import type { Instant, TaskStatus } from '../../../core/task.ts'
import { isTerminal, TERMINAL_STATUSES } from '../../../core/task.ts'
import type { Query } from '../../store.ts'
import { beyond } from '../records/bulk-reads.ts'
import { subtract } from './merge-segments.ts'
import type { IndexedTask, SegmentName } from './segment-names.ts'
import { SegmentGone, type Segments } from './segments.ts'

/** Segments read at once. It starts small, because a page rarely needs more. */
const FIRST_READS = 2
const MOST_READS = 32
/** How often a query starts again because a segment that it listed was merged. */
const TRIES = 5

export class EndedReader {
  readonly #segments: Segments

  constructor(segments: Segments) {
    this.#segments = segments
  }

  /** Entries that may match, in the order of their ids. Each page is read on demand. */
  async *inOrder(query: Query, forward: boolean, after: string | undefined): AsyncGenerator<readonly IndexedTask[]> {
    let cursor = after
    for (let tries = 1; ; tries++) {
      try {
        for await (const entries of this.#inOrder(query, forward, cursor)) {
          yield entries
          cursor = entries.at(-1)!.id
        }
        return
      } catch (error) {
        if (!(error instanceof SegmentGone) || tries === TRIES) throw error
      }
    }
  }

  async *#inOrder(query: Query, forward: boolean, after: string | undefined): AsyncGenerator<readonly IndexedTask[]> {
    const isBeyond = beyond(after, forward)
    const names = (await this.#segments.names()).filter(
      (name) => mayMatch(name, query) && isBeyond(forward ? name.high : name.low),
    )
    const removed = (await this.#readAll(names.filter(({ kind }) => kind === 'removed'))).flat()
    const ahead = names.filter(({ kind }) => kind === 'added')
    ahead.sort((a, b) => (forward ? compare(a.low, b.low) : compare(b.high, a.high)))
    let found: IndexedTask[] = []
    for (let next = 0, reads = FIRST_READS; next < ahead.length; reads = Math.min(2 * reads, MOST_READS)) {
      const some = ahead.slice(next, next + reads)
      next += some.length
      for (const entries of await this.#readAll(some))
        for (const entry of entries) if (isBeyond(entry.id) && entryMatches(entry, query)) found.push(entry)
      // No segment that is still unread has an id before this one.
      const limit = ahead[next]
      const isSure = ({ id }: IndexedTask): boolean =>
        limit === undefined || (forward ? id < limit.low : id > limit.high)
      const sure = subtract(found.filter(isSure), removed).entries
      found = found.filter((entry) => !isSure(entry))
      sure.sort((a, b) => (forward ? compare(a.id, b.id) : compare(b.id, a.id)))
      if (sure.length > 0) yield sure
    }
  }

  /** The number of entries that match each query, and which of the given entries are missing, all from one list. */
  async countAll(
    queries: readonly Query[],
    entries: readonly IndexedTask[],
  ): Promise<{ readonly counts: readonly number[]; readonly missing: readonly boolean[] }> {
    return this.#retry(async () => {
      const names = await this.#segments.names()
      const occurrences = entries.length === 0 ? [] : await this.#segments.occurrences(names, entries)
      const counts = await Promise.all(queries.map((query) => this.#count(names, query)))
      return { counts, missing: occurrences.map(({ added, removed }) => added <= removed) }
    })
  }

  /** Uses the names alone if the query has only statuses and a queue. Tags are not in the index. */
  async #count(names: readonly SegmentName[], query: Query): Promise<number> {
    if (query.tag !== undefined) return 0
    const meant = names.filter((name) => mayMatch(name, query))
    if (isOfNames(query))
      return Math.max(
        0,
        meant.reduce((sum, { kind, count }) => sum + (kind === 'removed' ? -count : count), 0),
      )
    const of = (kind: SegmentName['kind']): Promise<readonly (readonly IndexedTask[])[]> =>
      this.#readAll(meant.filter((name) => name.kind === kind))
    const [added, removed] = await Promise.all([of('added'), of('removed')])
    return subtract(added.flat(), removed.flat()).entries.filter((entry) => entryMatches(entry, query)).length
  }

  /** Tasks that ended or moved after this instant. `isRecent`: no segment from that time can have been merged yet. */
  async changedSince(query: Query & { readonly updatedAfter: Instant }, isRecent: boolean): Promise<string[]> {
    return this.#retry(async () => {
      const names = await this.#segments.names(isRecent ? query.updatedAfter : undefined)
      const meant = names.filter((name) => name.kind === 'added' && mayMatch(name, query))
      const read = await this.#readAll(meant)
      return read.flatMap((entries) => entries.filter((entry) => entryMatches(entry, query)).map(({ id }) => id))
    })
  }

  /** Starts again if a segment was merged after it was listed. */
  async #retry<T>(call: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await call()
      } catch (error) {
        if (!(error instanceof SegmentGone) || tries === TRIES) throw error
      }
    }
  }

  #readAll(names: readonly SegmentName[]): Promise<(readonly IndexedTask[])[]> {
    return Promise.all(names.map((name) => this.#segments.read(name)))
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export const endedStatusesOf = ({ views, workerId }: Query): readonly TaskStatus[] => {
  if (workerId !== undefined) return []
  if (views === undefined) return TERMINAL_STATUSES
  return views.map(({ status }) => status).filter(isTerminal)
}

const mayMatch = ({ status, queue, from, to, completedFrom }: SegmentName, query: Query): boolean =>
  endedStatusesOf(query).includes(status) &&
  (query.queue === undefined || queue === query.queue) &&
  (query.completedBefore === undefined || completedFrom < query.completedBefore) &&
  (query.updatedAfter === undefined || to > query.updatedAfter) &&
  (query.updatedBefore === undefined || from < query.updatedBefore)

/** Compares everything except the tag. */
const entryMatches = (entry: IndexedTask, query: Query): boolean =>
  endedStatusesOf(query).includes(entry.status) &&
  (query.queue === undefined || entry.queue === query.queue) &&
  (query.type === undefined || entry.type === query.type) &&
  (query.createdAfter === undefined || entry.createdAt > query.createdAfter) &&
  (query.createdBefore === undefined || entry.createdAt < query.createdBefore) &&
  (query.completedBefore === undefined || (entry.completedAt !== null && entry.completedAt < query.completedBefore)) &&
  (query.updatedAfter === undefined || entry.updatedAt > query.updatedAfter) &&
  (query.updatedBefore === undefined || entry.updatedAt < query.updatedBefore)

const isOfNames = (query: Query): boolean =>
  query.type === undefined &&
  query.createdAfter === undefined &&
  query.createdBefore === undefined &&
  query.completedBefore === undefined &&
  query.updatedAfter === undefined &&
  query.updatedBefore === undefined
