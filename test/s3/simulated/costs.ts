/** What tasks cost at the distance of a real S3: the scenes, and the table of docs/stores/s3.md that shows them. */
import { dollarsOf, type SimulatedS3 } from '../../servers/simulated-s3/start.ts'
import { type FlowSettings, flow } from './scenes.ts'

export const SCENES: readonly (readonly [name: string, settings: Omit<FlowSettings, 'concurrency'>])[] = [
  ['5 a second, 1 worker', { workers: 1, types: 1, tasks: 60, rate: 5 }],
  ['5 a second, 4 workers', { workers: 4, types: 1, tasks: 100, rate: 5 }],
  ['50 a second, 1 worker', { workers: 1, types: 1, tasks: 300, rate: 50 }],
  ['50 a second, 10 types, 4 workers', { workers: 4, types: 10, tasks: 300, rate: 50 }],
  ['batches of 1,000, 1 worker', { workers: 1, types: 1, tasks: 1_000, rate: null }],
  ['batches of 1,000, 10 types, 1 worker', { workers: 1, types: 10, tasks: 1_000, rate: null }],
  ['batches of 1,000, 4 workers', { workers: 4, types: 1, tasks: 1_000, rate: null }],
  ['batches of 1,000, 10 types, 4 workers', { workers: 4, types: 10, tasks: 1_000, rate: null }],
]

export interface CostRow {
  readonly name: string
  /** Of a task. */
  readonly PUT: number
  readonly GET: number
  readonly LIST: number
  /** A million tasks. */
  readonly dollars: number
}

export const measureCosts = async (s3: SimulatedS3, [name, settings]: (typeof SCENES)[number]): Promise<CostRow> => {
  const { counts, runs } = await flow(s3, { ...settings, concurrency: 20 })
  if (runs !== settings.tasks) throw new Error(`${name}: ${runs} runs of ${settings.tasks} tasks`)
  const { PUT, GET, LIST } = counts
  const share = (count: number): number => count / settings.tasks
  return { name, PUT: share(PUT), GET: share(GET), LIST: share(LIST), dollars: share(dollarsOf(counts)) * 1e6 }
}

export const costTable = (rows: readonly CostRow[]): string =>
  [
    '| tasks submitted, and run by other processes | PUT | GET | LIST | a million |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map(
      ({ name, PUT, GET, LIST, dollars }) =>
        `| ${name} | ${PUT.toFixed(2)} | ${GET.toFixed(1)} | ${LIST.toFixed(2)} | $${dollars.toFixed(2)} |`,
    ),
  ].join('\n')

/** By name: dollars a million, as the page says. */
export const documentedCosts = (page: string): ReadonlyMap<string, number> =>
  new Map(
    [...page.matchAll(/^\| ([^|`]+) \|(?: [\d.]+ \|){3} \$([\d.]+) \|$/gm)].map(([, name, cost]) => [
      name!,
      Number(cost),
    ]),
  )
