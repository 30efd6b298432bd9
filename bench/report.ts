/** The measured tables, for a terminal and for the documentation: the same cells, other lines around them. */
import type { CostRow, Report } from './measure.ts'

type Table = readonly (readonly string[])[]

const NOTHING = '–'

const shown = (value: number | undefined, unit: string): string => {
  if (value === undefined) return NOTHING
  const digits = unit === '/s' || value >= 100 ? 0 : 2
  // Three digits are what a benchmark can know.
  const known = value >= 1_000 ? Number(value.toPrecision(3)) : value
  return `${known.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`.replace(
    ' /s',
    '/s',
  )
}

const shownCost = (cost: CostRow['systems'][string] | undefined): string => {
  if (cost === undefined) return NOTHING
  const server = cost.serverCpuMicros === null ? '' : ` + ${shown(cost.serverCpuMicros, 'µs')}`
  return `${shown(cost.cpuMicros, 'µs')}${server}, ${Math.round(cost.maxRssMegabytes)} MB`
}

const tablesOf = ({
  systems,
  rows,
  costs,
  ratios,
}: Report): readonly { readonly title: string; readonly table: Table }[] => {
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
  `${machine['processor']}, ${machine['cores']} cores, ${machine['memoryGigabytes']} GB, ${machine['platform']}; ` +
    `Node ${machine['node']}${field === 'sqlite' ? `, SQLite ${machine['sqlite']}` : ''}; other processes took ${othersPercent} % of it meanwhile.`,
  ...notes,
  `${tasks.toLocaleString('en')} tasks, medians of ${runs} ${runs === 1 ? 'run' : 'runs'}, each system in a process of its own, taking turns.`,
  `Again: ${command}`,
]

export const asText = (report: Report): string =>
  [...tablesOf(report).map(({ title, table }) => `${title}\n\n${aligned(table)}\n`), ...factsOf(report)].join('\n')

const aligned = (table: Table): string => {
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)))
  return table
    .map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd())
    .join('\n')
}

export const asMarkdown = (report: Report): string =>
  [
    ...tablesOf(report).map(({ title, table }) => `#### ${title}\n\n${piped(table)}\n`),
    ...factsOf(report).map((fact) => `${fact.replace(/^Again: (.*)$/, 'Again: `$1`')}\n`),
  ].join('\n')

const piped = ([head, ...rows]: Table): string =>
  [head!, head!.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
