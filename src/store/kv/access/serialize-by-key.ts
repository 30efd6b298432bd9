/** Runs calls concurrently, but calls that share a key one after another in the order given. */
export const serializeByKey = <Item, Result>(
  items: readonly Item[],
  keysOf: (item: Item) => readonly string[],
  call: (item: Item) => Promise<Result>,
): Promise<Result[]> => {
  const last = new Map<string, Promise<unknown>>()
  return Promise.all(
    items.map((item) => {
      const keys = keysOf(item)
      const earlier = keys.flatMap((key) => last.get(key) ?? [])
      const result = earlier.length === 0 ? call(item) : Promise.allSettled(earlier).then(() => call(item))
      for (const key of keys) last.set(key, result)
      return result
    }),
  )
}
