/** How many are due since the last call, at so many a second. What a late call missed is due at the next: the rate holds. */
export const pace = (rate: number): (() => number) => {
  let [owed, last] = [0, performance.now()]
  return () => {
    const now = performance.now()
    owed += ((now - last) / 1_000) * rate
    last = now
    const due = Math.floor(owed)
    owed -= due
    return due
  }
}
