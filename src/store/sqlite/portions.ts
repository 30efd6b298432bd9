/** Splits batches that are too large for the thread's heap. Each task of a batch is independent, so this is safe. */
import { HoldfastError, isContactLost } from '../../core/errors.ts'
import { cutToWeight } from '../../core/storage/page-weight.ts'
import type { Change } from '../../core/task.ts'

export const inPortions = async <Item, Result>(
  items: readonly Item[],
  weigh: (item: Item) => number,
  send: (some: readonly Item[]) => Promise<readonly Result[]>,
): Promise<Result[]> => {
  const results: Result[] = []
  do {
    const { taken } = cutToWeight(results.length === 0 ? items : items.slice(results.length), weigh)
    try {
      results.push(...(await send(taken)))
    } catch (error) {
      // Earlier portions are written, so the outcome of the whole batch is unclear.
      if (results.length === 0 || isContactLost(error)) throw error
      const why = error instanceof Error ? error.message : String(error)
      throw new HoldfastError('STORE_UNAVAILABLE', `${why} (after ${results.length} of ${items.length})`, {}, error)
    }
  } while (results.length < items.length)
  return results
}

export const weightOfChange = ({ set: { output }, journal = [] }: Change): number =>
  journal.reduce((sum, { value }) => sum + (value?.length ?? 0), output?.length ?? 0)
