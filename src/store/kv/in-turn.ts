/** Calls beside each other, but those that share a name in the order given. */
export const inTurn = <Item, Result>(
  items: readonly Item[],
  namesOf: (item: Item) => readonly string[],
  one: (item: Item) => Promise<Result>,
): Promise<Result[]> => {
  const before = new Map<string, Promise<unknown>>()
  return Promise.all(
    items.map((item) => {
      const names = namesOf(item)
      const earlier = names.flatMap((name) => before.get(name) ?? [])
      const result = earlier.length === 0 ? one(item) : Promise.allSettled(earlier).then(() => one(item))
      for (const name of names) before.set(name, result)
      return result
    }),
  )
}
