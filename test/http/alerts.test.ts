/** docs/alerts.yaml, held against what /metrics has. `promtool check rules docs/alerts.yaml` checks the rest of its syntax. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { queryProblems, scraped } from './metric-queries.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly action: string }
}

const text = readFileSync('docs/alerts.yaml', 'utf8')
const rules = (parse(text) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules)

/** What is wrong with one rule, given the metrics that there are. */
const problemsOf = ({ alert, expr, labels, annotations }: Rule, kinds: ReadonlyMap<string, string>): string[] => {
  const problems = queryProblems(expr, kinds)
  const kept = new Set([...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, by]) => by!.split(', ')))
  for (const [, label] of `${annotations.summary}${annotations.action}`.matchAll(/\$labels\.(\w+)/g))
    if (!kept.has(label!)) problems.push(`says ${label}, which the query does not keep`)
  if (!['page', 'ticket'].includes(labels.severity)) problems.push(`has the severity ${labels.severity}`)
  return problems.map((problem) => `${alert}: ${problem}`)
}

it('asks only for metrics, labels and views that exist, and names what its query keeps', async () => {
  const kinds = await scraped()
  expect(rules.length).toBeGreaterThan(5)
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
  expect(rules.flatMap((rule) => problemsOf(rule, kinds))).toEqual([])
})

it('names pages that exist', () => {
  for (const [page] of text.matchAll(/docs\/[\w/-]+\.md/g)) expect(existsSync(page), page).toBe(true)
})

it('would fail with an unknown metric, a gauge taken for a counter, or a label that is not there', async () => {
  const kinds = await scraped()
  const [rule] = rules
  const faults: readonly [Partial<Rule>, RegExp][] = [
    [{ expr: 'sum by (queue) (rate(holdfast_failures_total[5m])) > 0' }, /no metric holdfast_failures_total/],
    [{ expr: 'sum by (queue) (rate(holdfast_queue_depth[5m])) > 0' }, /is a gauge/],
    [{ expr: 'max by (queue) (holdfast_tasks_failed_total) > 0' }, /is a counter/],
    [{ expr: 'max by (queue) (holdfast_queue_depth{view="dead"}) > 0' }, /no view dead/],
    [{ annotations: { summary: '{{ $labels.team }}', action: '' } }, /says team/],
  ]
  for (const [fault, said] of faults) expect(problemsOf({ ...rule!, ...fault }, kinds).join('\n')).toMatch(said)
})
