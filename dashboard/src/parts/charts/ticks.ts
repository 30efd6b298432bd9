/** Where the labels of an axis of values stand. */

/** Steps of an axis of counts: half a task would be labelled as a whole one. */
export const WHOLE: readonly number[] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000].flatMap((power) =>
  [1, 2, 5].map((n) => n * power),
)

/** About four ticks, none twice the same. `sizes` are the steps to choose from; default: decimal. */
export const ticksUpTo = (
  most: number,
  format: (value: number) => string,
  sizes?: readonly number[],
): readonly number[] => {
  const power = 10 ** Math.floor(Math.log10(most / 3))
  const decimal = [1, 2, 5, 10].map((n) => n * power)
  const step = (sizes ?? decimal).find((one) => most / one <= 4) ?? decimal.at(-1)!
  const ticks: number[] = []
  for (let at = 0; at <= most; at += step)
    if (ticks.length === 0 || format(at) !== format(ticks.at(-1)!)) ticks.push(at)
  return ticks
}
