/** Which figures are compared with which, and the targets of Holdfast. */
import type { Row } from './measure.ts'
import { medianRatio } from './median.ts'
import type { Entrant, Field } from './systems.ts'

export interface Ratio {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The target as text; null if there is none. */
  readonly target: string | null
  readonly met: boolean | null
}

interface Target {
  readonly least?: number
  readonly most?: number
}

/** Our systems: each is compared with the peers. The first also has its own targets. */
const OURS: Readonly<Record<Field, readonly string[]>> = {
  sqlite: ['holdfast-sqlite'],
  postgres: ['holdfast-postgres', 'holdfast-postgres, completed not kept'],
}

/** From the issues. */
const TARGETS: Readonly<Record<Field, Readonly<Record<string, Target>>>> = {
  sqlite: {
    'drain-100 / plainjob': { least: 5 },
    'insert-batch / raw-sqlite': { least: 0.6 },
    'insert-64-callers / insert-1-caller': { least: 4 },
    'latency p50': { most: 2 },
    'idle CPU of one core': { most: 1 },
  },
  postgres: {
    'insert-batch / best peer': { least: 1.5 },
    'drain-100 / best peer': { least: 1.4 },
    'drain-100, completed not kept / best peer': { least: 1.8 },
    'latency p50 / graphile-worker': { most: 1 },
  },
}

type Runs = Row['runs']

export const compare = (field: Field, rows: readonly Row[], entrants: readonly Entrant[]): Ratio[] => {
  const ratio = ratioOf(TARGETS[field])
  const main = OURS[field][0]!
  const peers = new Set(entrants.filter(({ isPeer }) => isPeer).map(({ name }) => name))
  const documented = new Set(entrants.filter(({ isPeer, isBeyond }) => isPeer && !isBeyond).map(({ name }) => name))
  return [
    ...againstOthers(rows, OURS[field], documented, ratio),
    ...latencyAgainstOthers(rows, main, peers, ratio),
    ...callersAgainstOne(rows, main, ratio),
    ...absolutes(rows, main, TARGETS[field], ratio),
  ]
}

type MakeRatio = (name: string, value: number, unit: string, remark?: string) => Ratio

/** The ratio of ours to each other system, run by run, so that a machine that gets slower affects both sides alike. */
const againstOthers = (
  rows: readonly Row[],
  ours: readonly string[],
  peers: ReadonlySet<string>,
  ratio: MakeRatio,
): Ratio[] =>
  rows
    .filter(({ figure }) => figure === 'tasks/s')
    .flatMap(({ workload, runs, median }) =>
      ours.flatMap((mine) => {
        if (runs[mine] === undefined) return []
        const name = `${workload}${mine.slice(ours[0]!.length)}`
        const others = Object.keys(runs).filter((system) => !ours.includes(system))
        const best = bestOf(
          others.filter((system) => peers.has(system)),
          median,
        )
        return [
          ...others.map((system) => ratio(`${name} / ${system}`, pairwise(runs, mine, system), '×')),
          ...(best === null ? [] : [ratio(`${name} / best peer`, pairwise(runs, mine, best), '×', best)]),
        ]
      }),
    )

/** Null if there is no choice. */
const bestOf = (systems: readonly string[], median: Row['median']): string | null =>
  systems.length < 2 ? null : systems.reduce((best, one) => (median[one]! > median[best]! ? one : best))

const latencyAgainstOthers = (
  rows: readonly Row[],
  mine: string,
  peers: ReadonlySet<string>,
  ratio: MakeRatio,
): Ratio[] =>
  rows
    .filter(({ workload, figure, runs }) => workload === 'latency' && figure === 'p50' && runs[mine] !== undefined)
    .flatMap(({ runs }) =>
      Object.keys(runs)
        .filter((system) => peers.has(system))
        .map((system) => ratio(`latency p50 / ${system}`, pairwise(runs, mine, system), '×')),
    )

const callersAgainstOne = (rows: readonly Row[], mine: string, ratio: MakeRatio): Ratio[] => {
  const one = rows.find(({ workload }) => workload === 'insert-1-caller')?.runs[mine]
  const many = rows.find(({ workload }) => workload === 'insert-64-callers')?.runs[mine]
  return one === undefined || many === undefined
    ? []
    : [ratio('insert-64-callers / insert-1-caller', medianRatio(many, one), '×')]
}

const absolutes = (
  rows: readonly Row[],
  mine: string,
  targets: Readonly<Record<string, Target>>,
  ratio: MakeRatio,
): Ratio[] =>
  rows.flatMap(({ workload, figure, unit, median }) => {
    const name = `${workload} ${figure}`
    return targets[name] === undefined || median[mine] === undefined ? [] : [ratio(name, median[mine], unit)]
  })

const pairwise = (runs: Runs, ours: string, theirs: string): number => medianRatio(runs[ours]!, runs[theirs]!)

const ratioOf =
  (targets: Readonly<Record<string, Target>>): MakeRatio =>
  (name, value, unit, remark) => {
    const { least, most } = targets[name] ?? {}
    const target =
      least !== undefined ? `at least ${least} ${unit}` : most !== undefined ? `under ${most} ${unit}` : null
    return {
      name: remark === undefined ? name : `${name} (${remark})`,
      value,
      unit,
      target,
      met:
        target === null
          ? null
          : value >= (least ?? Number.NEGATIVE_INFINITY) && value < (most ?? Number.POSITIVE_INFINITY),
    }
  }
