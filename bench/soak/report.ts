/** From the samples of a soak to its verdict and its picture. */
import { FIGURES, SHOWN } from './figures.ts'
import type { Chart, Line } from './plot.ts'
import type { Figures, Sample } from './sample.ts'
import { LEAST_POINTS, type Trend, trendOf } from './trend.ts'

/** Whose figure it is: a process, `store` or `work`. */
const owners = ({ processes, store, work }: Sample): readonly (readonly [owner: string, figures: Figures])[] => [
  ...Object.entries(processes),
  ['store', store],
  ['work', work],
]

/** By figure, one line for each owner. */
const linesOf = (samples: readonly Sample[]): ReadonlyMap<string, readonly Line[]> => {
  const lines = new Map<string, Map<string, Line['points'][number][]>>()
  for (const sample of samples)
    for (const [owner, figures] of owners(sample))
      for (const [figure, value] of Object.entries(figures)) {
        const byOwner = lines.get(figure) ?? new Map<string, Line['points'][number][]>()
        lines.set(figure, byOwner)
        byOwner.set(owner, [...(byOwner.get(owner) ?? []), { minute: sample.minute, value }])
      }
  return new Map([...lines].map(([figure, of]) => [figure, [...of].map(([name, points]) => ({ name, points }))]))
}

export interface Verdict {
  readonly figure: string
  readonly owner: string
  readonly trend: Trend
}

export const verdictsOf = (samples: readonly Sample[]): readonly Verdict[] => {
  const lines = linesOf(samples)
  return Object.entries(FIGURES).flatMap(([figure, { bound }]) =>
    (lines.get(figure) ?? []).flatMap(({ name, points }) => {
      const trend = trendOf(points, bound)
      return trend === null ? [] : [{ figure, owner: name, trend }]
    }),
  )
}

export const chartsOf = (samples: readonly Sample[]): readonly Chart[] => {
  const lines = linesOf(samples)
  return Object.entries({ ...FIGURES, ...SHOWN }).flatMap(([figure, { title, unit }]) => {
    const some = lines.get(figure)
    return some === undefined ? [] : [{ title, unit, lines: some }]
  })
}

const shown = (value: number): string => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1))

/** Markdown, and one sentence. */
export const tableOf = (verdicts: readonly Verdict[]): string => {
  if (verdicts.length === 0)
    return `Too short to judge: at least ${LEAST_POINTS} samples must follow the first third.\n`
  const rows = verdicts.map(({ figure, owner, trend: { level, growth, allowed, isTrend } }) => {
    const { title, unit } = FIGURES[figure]!
    const what = unit === '' ? title : `${title} (${unit})`
    return `| ${what} | ${owner} | ${shown(level)} | ${growth > 0 ? '+' : ''}${shown(growth)} | ${shown(allowed)} | ${isTrend ? 'GROWS' : 'flat'} |`
  })
  return ['| figure | of | median | growth | allowed | |', '| --- | --- | --: | --: | --: | --- |', ...rows, ''].join(
    '\n',
  )
}
