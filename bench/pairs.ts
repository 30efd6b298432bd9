/** Two things measured in turns: on a busy machine both sides of a pair had nearly the same minute, and processor time tells more than the clock. */
import type { Ground } from './ground.ts'
import { turns } from './turns.ts'

/** Milliseconds. */
export interface Took {
  readonly wall: number
  readonly processor: number
}

export const timed = async ({ processor }: Pick<Ground, 'processor'>, work: () => Promise<void>): Promise<Took> => {
  const before = await processor()
  const start = performance.now()
  await work()
  const wall = performance.now() - start
  return { wall, processor: (await processor()) - before }
}

export type Portion = () => Promise<Took>

/** The portions of each side, pair by pair. */
export const inTurns = async (
  pairs: number,
  usual: Portion,
  measured: Portion,
): Promise<{ readonly usual: readonly Took[]; readonly measured: readonly Took[] }> => {
  const took = new Map<Portion, Took[]>([
    [usual, []],
    [measured, []],
  ])
  for (let pair = 0; pair < pairs; pair++)
    for (const portion of turns([usual, measured], pair)) took.get(portion)!.push(await portion())
  return { usual: took.get(usual)!, measured: took.get(measured)! }
}

/** Ratios of rates, measured to usual: the median, and those between which it lies with 95% confidence, for 15 pairs. */
export const ratiosText = (usual: readonly Took[], measured: readonly Took[]): string => {
  const ratios = (of: keyof Took): string => {
    const sorted = measured.map((one, pair) => usual[pair]![of] / one[of]).sort((a, b) => a - b)
    const at = (share: number): string => sorted[Math.round(share * (sorted.length - 1))]!.toFixed(2)
    return `${at(1 / 2)} (${at(3 / 14)} to ${at(11 / 14)})`
  }
  return `${ratios('wall')}, by processor time ${ratios('processor')}`
}
