/** How much one answer of a store may hold: payloads are up to megabytes each, and an answer is held in memory several times over. */
import type { TaskRecord } from '../task.ts'

/** In characters of payload. A page or a claim ends with the task that reaches it, so it always has one. */
export const PAGE_WEIGHT = 8_388_608
/** A store may count bytes, of which a character has up to three. */
const LEAST_OF_CUT = PAGE_WEIGHT / 4

/** The size of a record, by which pages are cut. */
export const weightOf = ({ input, output, progress }: Pick<TaskRecord, 'input' | 'output' | 'progress'>): number =>
  input.length + (output?.length ?? 0) + (progress?.length ?? 0)

/** Whether it holds as much as one page may. */
export const isHeavy = (page: readonly TaskRecord[]): boolean => weightOfAll(page) >= PAGE_WEIGHT

const weightOfAll = (page: readonly TaskRecord[]): number => {
  let weight = 0
  for (const task of page) weight += weightOf(task)
  return weight
}

/** Whether there is certainly no page after this one. */
export const isLastPage = (page: readonly TaskRecord[], limit: number): boolean =>
  page.length < limit && weightOfAll(page) < LEAST_OF_CUT

/** The first of these up to the one with which they weigh `PAGE_WEIGHT`. */
export const cutToWeight = <T>(items: Iterable<T>, weigh: (item: T) => number): { taken: T[]; isCut: boolean } => {
  const taken: T[] = []
  let weight = 0
  for (const item of items) {
    if (weight >= PAGE_WEIGHT) return { taken, isCut: true }
    taken.push(item)
    weight += weigh(item)
  }
  return { taken, isCut: false }
}

/** The same of what is read one by one: what comes after is not read. */
export const readToWeight = <K, T>(keys: Iterable<K>, read: (key: K) => T, weigh: (item: T) => number): T[] =>
  cutToWeight(eachRead(keys, read), weigh).taken

function* eachRead<K, T>(keys: Iterable<K>, read: (key: K) => T): Generator<T, void, undefined> {
  for (const key of keys) yield read(key)
}
