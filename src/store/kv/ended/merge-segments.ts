/**
 * Merges small segments into large ones and drops entries of tasks that have left the status. This keeps the number of
 * segments low and their counts exact.
 */
import type { Instant } from '../../../core/task.ts'
import { type IndexedTask, identityOf, type SegmentName } from './segment-names.ts'
import { MOST_ENTRIES, mayHold, SegmentGone, type Segments } from './segments.ts'

/** Younger segments stay: their entries, or removals that match them, may still be on their way. */
export const MERGE_AGE = 600_000
const SMALL = MOST_ENTRIES / 2
/** With fewer small segments a merge is not worth while. */
const ENOUGH = 10
/** Small segments that one merge reads. */
const MOST_READ = 200

/** The number of segments that were replaced. 0: nothing to do. */
export const mergeSegments = async (segments: Segments, now: Instant): Promise<number> => {
  const names = (await segments.names()).filter(({ to }) => to < now - MERGE_AGE)
  let replaced = 0
  for (const group of Map.groupBy(names, ({ status, queue }) => `${status} ${queue}`).values()) {
    try {
      replaced += await mergeGroup(segments, group)
    } catch (error) {
      // Another process has merged it. The next run sees the result.
      if (!(error instanceof SegmentGone)) throw error
    }
  }
  return replaced
}

/** Merges segments of one status and queue: small ones, removals, and the segments with the entries that were removed. */
const mergeGroup = async (segments: Segments, group: readonly SegmentName[]): Promise<number> => {
  const readAll = (names: readonly SegmentName[]): Promise<(readonly IndexedTask[])[]> =>
    Promise.all(names.map((name) => segments.read(name)))
  const removals = group.filter(({ kind }) => kind === 'removed').slice(0, MOST_READ / 4)
  const removed = (await readAll(removals)).flat()
  const isRemoved = new Set(removed.map(identityOf))
  const added = group.filter(({ kind }) => kind === 'added').sort((a, b) => a.from - b.from)
  const near = added.filter((name) => removed.some((entry) => mayHold(name, entry))).slice(0, MOST_READ / 2)
  const touched = (await readAll(near)).flatMap((entries, i) =>
    entries.some((entry) => isRemoved.has(identityOf(entry))) ? [near[i]!] : [],
  )
  const small = added.filter(({ count }) => count < SMALL).slice(0, MOST_READ)
  const chosen = [...new Set([...touched, ...(small.length < ENOUGH ? [] : small)])]
  const { entries, unmatched } = subtract((await readAll(chosen)).flat(), removed)
  // A removal is dropped if no segment can hold its entry. One whose segment was not read may still match.
  const others = added.filter((name) => !near.includes(name) && !chosen.includes(name))
  const kept = unmatched.filter((entry) => others.some((name) => mayHold(name, entry)))
  if (chosen.length === 0 && kept.length === removed.length) return 0
  entries.sort((a, b) => a.updatedAt - b.updatedAt || (a.id < b.id ? -1 : 1))
  // New segments first: a reader in between sees entries twice, but never misses one.
  await writeAll(segments, 'added', entries)
  await writeAll(segments, 'removed', kept)
  await segments.delete([...chosen, ...removals])
  return chosen.length + removals.length
}

const writeAll = async (
  segments: Segments,
  kind: SegmentName['kind'],
  entries: readonly IndexedTask[],
): Promise<void> => {
  for (let i = 0; i < entries.length; i += MOST_ENTRIES) await segments.write(kind, entries.slice(i, i + MOST_ENTRIES))
}

/** Each removal cancels one entry. Entries that are still there twice were added twice, and are kept once. */
export const subtract = (
  added: readonly IndexedTask[],
  removed: readonly IndexedTask[],
): { readonly entries: IndexedTask[]; readonly unmatched: IndexedTask[] } => {
  const gone = new Map<string, IndexedTask[]>()
  for (const entry of removed) {
    const same = gone.get(identityOf(entry))
    if (same === undefined) gone.set(identityOf(entry), [entry])
    else same.push(entry)
  }
  const entries = new Map<string, IndexedTask>()
  for (const entry of added) if (gone.get(identityOf(entry))?.pop() === undefined) entries.set(identityOf(entry), entry)
  return { entries: [...entries.values()], unmatched: [...gone.values()].flat() }
}
