/** Keys in byte order, as servers list them. */
export class SortedKeys {
  readonly #keys: string[] = []

  /** The place of the first key that is not before this one. */
  #placeOf(key: string): number {
    let [low, high] = [0, this.#keys.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#keys[middle]! < key) low = middle + 1
      else high = middle
    }
    return low
  }

  add(key: string): void {
    const place = this.#placeOf(key)
    if (this.#keys[place] !== key) this.#keys.splice(place, 0, key)
  }

  delete(key: string): void {
    const place = this.#placeOf(key)
    if (this.#keys[place] === key) this.#keys.splice(place, 1)
  }

  under(prefix: string, after: string | undefined, limit: number): readonly string[] {
    const from = after === undefined || after < prefix ? prefix : after
    const found: string[] = []
    for (let i = this.#placeOf(from); i < this.#keys.length && found.length < limit; i++) {
      const key = this.#keys[i]!
      if (!key.startsWith(prefix)) break
      if (after === undefined || key > after) found.push(key)
    }
    return found
  }
}
