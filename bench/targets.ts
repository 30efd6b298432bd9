/** Which figures are compared with which, and what Holdfast wants of them. */
import type { Row } from './measure.ts'
import { medianOf } from './median.ts'

export interface Ratio {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** As text, for people; null where there is nothing to reach. */
  readonly target: string | null
  readonly met: boolean | null
}

interface Target {
  readonly least?: number
  readonly most?: number
}

const OURS = 'holdfast-sqlite'

/** From the issue. */
const TARGETS: Readonly<Record<string, Target>> = {
  'drain-100 / plainjob': { least: 5 },
  'insert-batch / raw-sqlite': { least: 0.6 },
  'insert-64-callers / insert-1-caller': { least: 4 },
  'latency p50': { most: 2 },
  'idle CPU of one core': { most: 1 },
}

export const compare = (rows: readonly Row[]): Ratio[] => [
  ...againstOthers(rows),
  ...callersAgainstOne(rows),
  ...absolutes(rows),
]

/** Ours to each other system's, run by run, so that a machine that grows slower hurts both sides alike. */
const againstOthers = (rows: readonly Row[]): Ratio[] =>
  rows
    .filter(({ figure }) => figure === 'tasks/s')
    .flatMap(({ workload, runs }) => {
      const ours = runs[OURS]
      const others = Object.keys(runs).filter((system) => system !== OURS)
      return ours === undefined
        ? []
        : others.map((system) => ratio(`${workload} / ${system}`, pairwise(ours, runs[system]!), '×'))
    })

const callersAgainstOne = (rows: readonly Row[]): Ratio[] => {
  const one = rows.find(({ workload }) => workload === 'insert-1-caller')?.runs[OURS]
  const many = rows.find(({ workload }) => workload === 'insert-64-callers')?.runs[OURS]
  return one === undefined || many === undefined
    ? []
    : [ratio('insert-64-callers / insert-1-caller', pairwise(many, one), '×')]
}

const absolutes = (rows: readonly Row[]): Ratio[] =>
  rows.flatMap(({ workload, figure, unit, median }) => {
    const name = `${workload} ${figure}`
    return TARGETS[name] === undefined || median[OURS] === undefined ? [] : [ratio(name, median[OURS], unit)]
  })

const pairwise = (ours: readonly number[], theirs: readonly number[]): number =>
  medianOf(ours.map((value, run) => value / theirs[run]!))

const ratio = (name: string, value: number, unit: string): Ratio => {
  const { least, most } = TARGETS[name] ?? {}
  const target = least !== undefined ? `at least ${least} ${unit}` : most !== undefined ? `under ${most} ${unit}` : null
  return {
    name,
    value,
    unit,
    target,
    met:
      target === null
        ? null
        : value >= (least ?? Number.NEGATIVE_INFINITY) && value < (most ?? Number.POSITIVE_INFINITY),
  }
}
