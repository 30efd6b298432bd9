/** When a figure grows: the rule by which a soak fails. */
import { medianOf } from '../median.ts'

export interface Point {
  readonly minute: number
  readonly value: number
}

/** A figure may grow by this share of its median, or by `floor`, whichever is more, in the time that is judged. */
export interface Bound {
  readonly share: number
  readonly floor: number
}

export interface Trend {
  /** The median of what was judged. */
  readonly level: number
  /** By the Theil–Sen slope, over the time that was judged. */
  readonly growth: number
  readonly allowed: number
  readonly isTrend: boolean
}

/** With fewer points a slope is a guess. */
export const LEAST_POINTS = 6

/** The median of the slopes of all pairs: up to 29 % of the points may be anything. */
export const slopeOf = (points: readonly Point[]): number => {
  const slopes = points.flatMap((from, index) =>
    points.slice(index + 1).map((to) => (to.value - from.value) / (to.minute - from.minute)),
  )
  return slopes.length === 0 ? 0 : medianOf(slopes)
}

/** The first third is warm-up: caches fill, code is compiled, retention has nothing to remove yet. */
export const judged = (points: readonly Point[]): readonly Point[] => points.slice(Math.floor(points.length / 3))

/** Null: there are too few points to judge. */
export const trendOf = (points: readonly Point[], { share, floor }: Bound): Trend | null => {
  const last = judged(points)
  if (last.length < LEAST_POINTS) return null
  const level = medianOf(last.map(({ value }) => value))
  const growth = slopeOf(last) * (last.at(-1)!.minute - last[0]!.minute)
  const allowed = Math.max(floor, share * level)
  return { level, growth, allowed, isTrend: growth > allowed }
}
