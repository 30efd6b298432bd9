/** The measured tables, for a terminal and for the documentation: the same cells, other lines around them. */
import type { Report } from './measure.ts'

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
  const cost = costs.map(({ what, cpuMicrosPerTask, maxRssMegabytes }) => [
    what,
    ...names.map((name) =>
      cpuMicrosPerTask[name] === undefined
        ? NOTHING
        : `${shown(cpuMicrosPerTask[name], 'µs')}, ${Math.round(maxRssMegabytes[name]!)} MB`,
    ),
  ])
  const keeps = names.map((name) => [name, ...Object.values(systems[name]!)])
  return [
    { title: 'Figures (medians)', table: [['', ...names], ...figures] },
    { title: 'Ratios of Holdfast to the others, and targets', table: [['', 'measured', 'target', ''], ...targets] },
    { title: 'CPU per task and largest memory', table: [['', ...names], ...cost] },
    { title: 'What each keeps', table: [['', 'durability', 'lease', 'history', 'rows'], ...keeps] },
  ].filter(({ table }) => table.length > 1)
}

const factsOf = ({ machine, othersPercent, tasks, runs, command }: Report): readonly string[] => [
  `${machine['processor']}, ${machine['cores']} cores, ${machine['memoryGigabytes']} GB, ${machine['platform']}; ` +
    `Node ${machine['node']}, SQLite ${machine['sqlite']}; other processes took ${othersPercent} % of it meanwhile.`,
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
    ...tablesOf(report).map(({ title, table }) => `### ${title}\n\n${piped(table)}\n`),
    ...factsOf(report).map((fact) => `${fact.replace(/^Again: (.*)$/, 'Again: `$1`')}\n`),
  ].join('\n')

const piped = ([head, ...rows]: Table): string =>
  [head!, head!.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
