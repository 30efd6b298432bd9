/** The results of the cells: every run of every system. */
import { medianOf } from '../median.ts'
import type { Cell } from './cells.ts'
import type { FigureName, Figures } from './figures.ts'

/** By system, then by figure: a value for each run. */
type Runs = Readonly<Record<string, Readonly<Partial<Record<FigureName, readonly number[]>>>>>

export interface CellResult {
  readonly name: string
  readonly what: string
  readonly kind: Cell['kind']
  readonly runs: Runs
}

export const resultOf = (
  { name, what, kind }: Cell,
  bySystem: ReadonlyMap<string, readonly Figures[]> = new Map(),
): CellResult => {
  const runs: Record<string, Partial<Record<FigureName, number[]>>> = {}
  for (const [system, all] of bySystem) {
    const figures: Partial<Record<FigureName, number[]>> = {}
    for (const one of all)
      for (const [figure, value] of Object.entries(one) as [FigureName, number][])
        figures[figure] = [...(figures[figure] ?? []), value]
    runs[system] = figures
  }
  return { name, what, kind, runs }
}

/** Undefined where it was not measured. */
export const medianIn = ({ runs }: CellResult, system: string, figure: FigureName): number | undefined => {
  const values = runs[system]?.[figure]
  return values === undefined ? undefined : medianOf(values)
}
