/** Chance that can be repeated: one seed per run, printed, taken from HOLDFAST_SEED when that is set. */

export interface Chance {
  readonly seed: number
  /** In [0, 1). */
  roll(): number
  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number
  pick<T>(items: readonly T[]): T
}

export const chance = (seed: number): Chance => {
  let state = seed >>> 0
  const roll = (): number => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const between = (low: number, high: number): number => low + Math.floor(roll() * (high - low + 1))
  return { seed, roll, between, pick: (items) => items[between(0, items.length - 1)]! }
}

/** Printed at once, so that a run that hangs can be repeated too. */
export const seededChance = (subject: string): Chance => {
  const seed = Number(process.env['HOLDFAST_SEED'] ?? Date.now() % 1_000_000_007)
  report(`${subject}: seed ${seed}`)
  return chance(seed)
}

/** A figure that the run measured. */
export const report = (line: string): void => void process.stdout.write(`  ${line}\n`)

/** The value below which `share` of the numbers lie. */
export const percentile = (numbers: readonly number[], share: number): number => {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
