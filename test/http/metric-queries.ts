/** Holds queries in PromQL against the metrics that there are: names, kinds, labels, and sums over processes. */
import { COUNTED_VIEWS } from '../../src/index.ts'
import { createMetrics } from '../../src/metrics/index.ts'
import { begin } from '../runtime/setup.ts'

/** Name → kind, as a scraper reads it. */
export const scraped = async (): Promise<ReadonlyMap<string, string>> => {
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

/** What is wrong with one query, given the metrics that there are. */
export const queryProblems = (expr: string, kinds: ReadonlyMap<string, string>): string[] => {
  const problems: string[] = []
  const found = [...expr.matchAll(/(holdfast_\w+)(?:\{([^}]*)\})?/g)]
  if (found.length === 0) problems.push('asks for no metric')
  for (const { index, 1: written, 2: filter = '' } of found) {
    const name = written!.replace(/_bucket$/, '')
    const kind = kinds.get(name)
    if (kind === undefined) problems.push(`there is no metric ${name}`)
    if ((kind === 'histogram') !== written!.endsWith('_bucket'))
      problems.push(`${written} is not how a ${kind} is asked`)
    const before = expr.slice(0, index)
    if ((kind === 'gauge') === /(?:rate|increase)\($/.test(before)) problems.push(`${name} is a ${kind}`)
    // Every process that is scraped tells of the whole store.
    if (
      kind === 'gauge' &&
      !OF_A_PROCESS.includes(name) &&
      !/max by \([^)]*\) \($/.test(before) &&
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
