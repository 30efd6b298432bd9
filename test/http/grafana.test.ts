/** The Grafana dashboard, held against what /metrics has: nobody has opened it in Grafana here, so a test reads it. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { COUNTED_VIEWS } from '../../src/index.ts'
import { createMetrics } from '../../src/metrics/index.ts'
import { begin } from '../runtime/setup.ts'

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

/** Name → kind, as a scraper reads it. */
const scraped = async (): Promise<ReadonlyMap<string, string>> => {
  const { client } = await begin()
  const metrics = createMetrics(client)
  const { text } = await metrics.text()
  metrics.close()
  return new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, kind]) => [name!, kind!]))
}

const LABELS: Readonly<Record<string, readonly string[]>> = {
  holdfast_queue_depth: ['queue', 'view'],
  holdfast_queue_limit: ['queue', 'limit'],
  holdfast_queue_rate_limit: ['queue', 'limit'],
  holdfast_queue_paused_groups: ['queue'],
}
const labelsOf = (name: string): readonly string[] => LABELS[name] ?? ['task_type', 'queue']

/** Each process counts its own. */
const OF_A_PROCESS = ['holdfast_handlers_stuck']

const unitOf = (expr: string): string =>
  expr.startsWith('histogram_quantile(') ? 's' : expr.includes('rate(') ? 'ops' : 'short'

/** What is wrong with one query, given the metrics that there are. */
const queryProblems = (expr: string, kinds: ReadonlyMap<string, string>): string[] => {
  const problems: string[] = []
  const found = [...expr.matchAll(/(holdfast_\w+)(?:\{([^}]*)\})?/g)]
  if (found.length === 0) problems.push('asks for no metric')
  for (const [, written, filter = ''] of found) {
    const name = written!.replace(/_bucket$/, '')
    const kind = kinds.get(name)
    if (kind === undefined) problems.push(`there is no metric ${name}`)
    if ((kind === 'histogram') !== written!.endsWith('_bucket'))
      problems.push(`${written} is not how a ${kind} is asked`)
    if ((kind === 'gauge') === /rate\(|increase\(/.test(expr)) problems.push(`${name} is a ${kind}`)
    // Every process that is scraped tells of the whole store.
    if (
      kind === 'gauge' &&
      !OF_A_PROCESS.includes(name) &&
      !expr.includes('max by (') &&
      !expr.startsWith('label_values(')
    )
      problems.push(`${name} is added up over processes`)
    for (const [, label, value] of filter.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)) {
      if (!labelsOf(name).includes(label!)) problems.push(`${name} has no label ${label}`)
      const views = label === 'view' ? value!.split('|') : []
      for (const view of views)
        if (!(COUNTED_VIEWS as readonly string[]).includes(view)) problems.push(`there is no view ${view}`)
    }
    for (const [, by] of expr.matchAll(/by \(([^)]*)\)/g))
      for (const label of by!.split(', '))
        if (![...labelsOf(name), 'le'].includes(label)) problems.push(`${name} cannot be told apart by ${label}`)
  }
  return problems
}

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
