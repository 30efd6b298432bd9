/** Whether the targets are met. */
import { medianRatio } from '../median.ts'
import { UNITS } from './figures.ts'
import { type CellResult, medianIn } from './results.ts'
import { POSTGRES } from './systems.ts'
import { PEAK_RSS, type Ref, TARGETS, type Target } from './targets.ts'

export interface Verdict {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly target: string
  readonly met: boolean
}

/** Covers the targets whose cells were measured. */
export const judge = (cells: readonly CellResult[]): Verdict[] => {
  const runsOf = ({ cell, system, figure }: Ref): readonly number[] | undefined =>
    cells.find(({ name }) => name === cell)?.runs[system]?.[figure]
  const medianOfRef = ({ cell, system, figure }: Ref): number | undefined => {
    const found = cells.find(({ name }) => name === cell)
    return found && medianIn(found, system, figure)
  }
  const verdicts = TARGETS.flatMap((target) => {
    const ours = runsOf(target.of)
    const value = medianOfRef(target.of)
    if (ours === undefined || value === undefined) return []
    if (target.to === undefined) return [verdictOf(target, value, UNITS[target.of.figure])]
    const best = bestOf(target.to, medianOfRef)
    return best === undefined ? [] : [verdictOf(target, medianRatio(ours, runsOf(best)!), '×')]
  })
  const peaks = cells
    .filter(({ kind }) => kind === 'drain')
    .flatMap((cell) => medianIn(cell, POSTGRES, 'peak RSS') ?? [])
  return peaks.length === 0 ? verdicts : [...verdicts, verdictOf(PEAK_RSS, Math.max(...peaks), 'MB')]
}

/** The highest rate, or the shortest time. */
const bestOf = (refs: readonly Ref[], medianOfRef: (ref: Ref) => number | undefined): Ref | undefined => {
  const measured = refs.filter((ref) => medianOfRef(ref) !== undefined)
  const goodness = (ref: Ref): number => (UNITS[ref.figure] === '/s' ? medianOfRef(ref)! : -medianOfRef(ref)!)
  return measured.toSorted((a, b) => goodness(b) - goodness(a))[0]
}

type Bounds = Pick<Target, 'name' | 'least' | 'most' | 'under'>

const verdictOf = ({ name, least, most, under }: Bounds, value: number, unit: string): Verdict => {
  if (least !== undefined) return { name, value, unit, target: `at least ${least} ${unit}`, met: value >= least }
  if (most !== undefined) return { name, value, unit, target: `at most ${most} ${unit}`, met: value <= most }
  return { name, value, unit, target: `under ${under} ${unit}`, met: value < under! }
}
