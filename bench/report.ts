/** The measured tables for the terminal and for the documentation: the same cells in two formats. */
import type { CostRow, Report } from './measure.ts'
import { inMarkdown, inText, machineLine, NOTHING, type Section, shown } from './tables.ts'

const shownCost = (cost: CostRow['systems'][string] | undefined): string => {
  if (cost === undefined) return NOTHING
  const server = cost.serverCpuMicros === null ? '' : ` + ${shown(cost.serverCpuMicros, 'µs')}`
  return `${shown(cost.cpuMicros, 'µs')}${server}, ${Math.round(cost.maxRssMegabytes)} MB`
}

const tablesOf = ({ systems, rows, costs, ratios }: Report): readonly Section[] => {
  const names = Object.keys(systems)
  const figures = rows.map(({ what, figure, unit, median }) => [
    figure === 'tasks/s' ? what : `${what}, ${figure}`,
    ...names.map((name) => shown(median[name], unit)),
  ])
  const targets = ratios.map(({ name, value, unit, target, met }) => [
    name,
    shown(value, unit),
    target ?? '',
    met === null ? '' : met ? 'met' : 'NOT MET',
  ])
  const cost = costs.map(({ what, systems: costOf }) => [what, ...names.map((name) => shownCost(costOf[name]))])
  const wal = costs
    .filter(({ systems: costOf }) => Object.values(costOf).some(({ walBytes }) => walBytes !== null))
    .map(({ what, systems: costOf }) => [
      what,
      ...names.map((name) => shown(costOf[name]?.walBytes ?? undefined, 'B').replace('.00', '')),
    ])
  const hasServer = wal.length > 0
  const keeps = names.map((name) => [name, ...Object.values(systems[name]!)])
  return [
    { title: 'Figures (medians)', table: [['', ...names], ...figures] },
    { title: 'Ratios of Holdfast to the others, and targets', table: [['', 'measured', 'target', ''], ...targets] },
    {
      title: `CPU per task${hasServer ? ', of the process and of the server,' : ''} and largest memory`,
      table: [['', ...names], ...cost],
    },
    { title: 'Write-ahead log per task', table: [['', ...names], ...wal] },
    { title: 'What each keeps', table: [['', 'durability', 'lease', 'history', 'rows'], ...keeps] },
  ].filter(({ table }) => table.length > 1)
}

const factsOf = ({ field, machine, othersPercent, notes, tasks, runs, command }: Report): readonly string[] => [
  machineLine(machine, othersPercent, field === 'sqlite'),
  ...notes,
  `${tasks.toLocaleString('en')} tasks, medians of ${runs} ${runs === 1 ? 'run' : 'runs'}, each system in a separate process, taking turns.`,
  `Again: ${command}`,
]

export const asText = (report: Report): string => inText(tablesOf(report), factsOf(report))

export const asMarkdown = (report: Report): string => inMarkdown(tablesOf(report), factsOf(report))
