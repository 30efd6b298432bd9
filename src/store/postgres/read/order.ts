/** Two batches that lock the same rows in the same order wait for each other; in different orders they deadlock. */

/** Sorts by id. Returns the same array if it is already sorted, as batches of tasks claimed together mostly are. */
export const byId = <Item extends { readonly id: string }>(items: readonly Item[]): readonly Item[] => {
  for (let i = 1; i < items.length; i++)
    if (items[i]!.id < items[i - 1]!.id) return [...items].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
  return items
}
