/** The Grafana dashboard, held against what /metrics has: nobody has opened it in Grafana here, so a test reads it. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { queryProblems, scraped } from './metric-queries.ts'

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly fieldConfig: { readonly defaults: { readonly unit: string } }
  readonly targets: readonly { readonly expr: string; readonly refId: string }[]
}

interface Dashboard {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: unknown }[] }
}

const GRID = 24
/** Of Grafana itself. */
const GIVEN = ['__rate_interval']

const read = (): Dashboard => JSON.parse(readFileSync(new URL('../../docs/grafana.json', import.meta.url), 'utf8'))

const unitOf = (expr: string): string =>
  expr.startsWith('histogram_quantile(') ? 's' : expr.includes('rate(') ? 'ops' : 'short'

const overlaps = ({ gridPos: a }: Panel, { gridPos: b }: Panel): boolean =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h

const problemsOf = ({ panels, templating }: Dashboard, kinds: ReadonlyMap<string, string>): string[] => {
  const variables = [...templating.list.map(({ name }) => name), ...GIVEN]
  const unknown = (text: string): string[] =>
    [...text.matchAll(/\$\{?(\w+)/g)].flatMap(([, name]) =>
      variables.includes(name!) ? [] : [`there is no variable ${name}`],
    )
  const inVariables = templating.list.flatMap(({ query }) => {
    const { query: asked = '' } = (typeof query === 'object' ? query : {}) as { query?: string }
    return asked === '' ? [] : queryProblems(asked, kinds).filter((one) => !one.includes('is a counter'))
  })
  const inPanels = panels.flatMap((panel, i) => {
    const { id, title, gridPos, fieldConfig, targets } = panel
    const problems = targets.flatMap(({ expr }) => [...queryProblems(expr, kinds), ...unknown(expr)])
    for (const { expr } of targets)
      if (unitOf(expr) !== fieldConfig.defaults.unit) problems.push(`unit ${fieldConfig.defaults.unit} for ${expr}`)
    if (new Set(targets.map(({ refId }) => refId)).size < targets.length) problems.push('two queries have one refId')
    if (gridPos.x < 0 || gridPos.x + gridPos.w > GRID) problems.push('does not fit the grid')
    for (const other of panels.slice(i + 1)) {
      if (other.id === id) problems.push(`has the id of ${other.title}`)
      if (overlaps(panel, other)) problems.push(`lies over ${other.title}`)
    }
    return problems.map((problem) => `${title}: ${problem}`)
  })
  return [...inVariables, ...inPanels]
}

it('asks only for metrics, labels and variables that exist, in the right units, and no panel lies over another', async () => {
  expect(problemsOf(read(), await scraped())).toEqual([])
})

it('shows every metric', async () => {
  const asked = read()
    .panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
    .join('\n')
  expect([...(await scraped()).keys()].filter((name) => !asked.includes(name))).toEqual([])
})

it('would fail with an unknown name, a wrong label, unit or sum, or two overlapping panels', async () => {
  const kinds = await scraped()
  const [first, second, ...others] = read().panels
  const withExpr = (expr: string): Dashboard => ({
    ...read(),
    panels: [{ ...first!, targets: [{ expr, refId: 'A' }] }],
  })
  const faults: readonly [Dashboard, RegExp][] = [
    [withExpr('sum(max by (queue) (holdfast_depth))'), /no metric holdfast_depth/],
    [withExpr('sum(max by (queue) (holdfast_queue_depth{kind="x"}))'), /no label kind/],
    [withExpr('sum(max by (queue) (holdfast_queue_depth{view="dead"}))'), /no view dead/],
    [withExpr('sum(holdfast_queue_depth)'), /added up over processes/],
    [withExpr('sum(rate(holdfast_tasks_failed_total[$__rate_interval]))'), /unit short/],
    [withExpr('sum(holdfast_tasks_failed_total)'), /is a counter/],
    [withExpr('sum(max by (queue) (holdfast_queue_depth{queue=~"$q"}))'), /no variable q/],
    [{ ...read(), panels: [first!, { ...second!, gridPos: first!.gridPos }, ...others] }, /lies over/],
    [{ ...read(), panels: [first!, { ...second!, id: first!.id }, ...others] }, /has the id of/],
  ]
  for (const [dashboard, said] of faults) expect(problemsOf(dashboard, kinds).join('\n')).toMatch(said)
})
