/** The figures of the deployment benchmark as tables. */
import { inMarkdown, inText, machineLine, NOTHING, type Section, shown } from '../tables.ts'
import type { Kind } from './cells.ts'
import { type FigureName, UNITS } from './figures.ts'
import type { Report } from './measure.ts'
import { type CellResult, medianIn } from './results.ts'
import { SYSTEMS } from './systems.ts'

/** A table: a row for each cell of the kind, a column for each system. */
interface View {
  readonly title: string
  readonly kind: Kind
  show(cell: CellResult, system: string): string
}

const one =
  (figure: FigureName): View['show'] =>
  (cell, system) =>
    shown(medianIn(cell, system, figure), UNITS[figure])

/** The processes, and after the plus sign the server. */
const withServer =
  (own: FigureName, server: FigureName): View['show'] =>
  (cell, system) => {
    const ofServer = one(server)(cell, system)
    return ofServer === NOTHING ? one(own)(cell, system) : `${one(own)(cell, system)} + ${ofServer}`
  }

const cpuPerTask = withServer('CPU per task', 'server CPU per task')

const percentiles: View['show'] = (cell, system) => {
  const values = (['p50', 'p95', 'p99', 'max'] as const).map((figure) => medianIn(cell, system, figure))
  const notRun = medianIn(cell, system, 'not run')
  if (notRun === undefined) return NOTHING
  const errors = medianIn(cell, system, 'errors') ?? 0
  const written = values.map((value) => (value === undefined ? NOTHING : value.toFixed(value < 100 ? 1 : 0)))
  return [written.join(' / '), notRun > 0 && `${notRun} not run`, errors > 0 && `${errors} errors`]
    .filter((part) => part !== false)
    .join(', ')
}

const depth: View['show'] = (cell, system) => {
  const [few, many] = (['tasks/s with few waiting', 'tasks/s with many waiting'] as const).map((figure) =>
    one(figure)(cell, system),
  )
  return few === NOTHING ? NOTHING : `${few}, ${many}`
}

const VIEWS: readonly View[] = [
  { title: 'Drain: tasks a second', kind: 'drain', show: one('tasks/s') },
  { title: 'Drain: CPU per task, of the worker processes + of the server', kind: 'drain', show: cpuPerTask },
  { title: 'Drain: write-ahead log per task', kind: 'drain', show: one('WAL per task') },
  { title: 'Drain: peak memory of a worker process', kind: 'drain', show: one('peak RSS') },
  { title: 'Mix: tasks a second', kind: 'mix', show: one('tasks/s') },
  { title: 'Mix: CPU per task, of the worker processes + of the server', kind: 'mix', show: cpuPerTask },
  {
    title: 'Steady load: milliseconds from submit to start, p50 / p95 / p99 / longest',
    kind: 'steady',
    show: percentiles,
  },
  { title: 'Batch insert: tasks a second', kind: 'insert-batch', show: one('tasks/s') },
  { title: 'Batch insert: CPU per task, of the producer + of the server', kind: 'insert-batch', show: cpuPerTask },
  {
    title: 'Idle worker: CPU of one core, of the worker + of the server',
    kind: 'idle',
    show: withServer('CPU of one core', 'server CPU of one core'),
  },
  { title: 'Idle worker: memory', kind: 'idle', show: one('RSS') },
  { title: 'Depth: tasks a second, with few and with many waiting', kind: 'depth', show: depth },
]

const sectionsOf = ({ cells, targets }: Report): Section[] => [
  ...VIEWS.map((view) => sectionOf(view, cells)).filter(({ table }) => table.length > 1),
  ...(targets.length === 0
    ? []
    : [
        {
          title: 'Targets',
          table: [
            ['', 'measured', 'target', ''],
            ...targets.map(({ name, value, unit, target, met }) => [
              name,
              shown(value, unit),
              target,
              met ? 'met' : 'NOT MET',
            ]),
          ],
        },
      ]),
]

/** Without empty rows and columns. */
const sectionOf = ({ title, kind, show }: View, cells: readonly CellResult[]): Section => {
  const ofKind = cells.filter((cell) => cell.kind === kind)
  const systems = SYSTEMS.map(({ name }) => name).filter((name) => ofKind.some((cell) => show(cell, name) !== NOTHING))
  const rows = ofKind
    .map((cell) => [cell.what, ...systems.map((name) => show(cell, name))])
    .filter(([, ...shownCells]) => shownCells.some((text) => text !== NOTHING))
  return { title, table: [['', ...systems], ...rows] }
}

const factsOf = (report: Report): string[] => {
  const { machine, othersPercent, notes, leftOut, failures, tasks, runs, targets, command } = report
  return [
    ...failures.map((failure) => `FAILED: ${failure.split('\n')[0]}`),
    ...leftOut,
    ...(targets.length === 0
      ? []
      : [`${targets.filter(({ met }) => met).length} of the ${targets.length} targets that were measured are met.`]),
    machineLine(machine, othersPercent, true),
    ...notes,
    `${tasks.toLocaleString('en')} tasks in a cell, medians of ${runs} ${runs === 1 ? 'run' : 'runs'}, the systems taking turns.`,
    `Again: ${command}`,
  ]
}

export const asText = (report: Report): string => inText(sectionsOf(report), factsOf(report))

export const asMarkdown = (report: Report): string => inMarkdown(sectionsOf(report), factsOf(report))
