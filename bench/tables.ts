/** Tables for the terminal and for the documentation: the same cells in two formats. */
import type { MachineFacts } from './machine.ts'

type Table = readonly (readonly string[])[]

export interface Section {
  readonly title: string
  readonly table: Table
}

export const NOTHING = '–'

export const shown = (value: number | undefined, unit: string): string => {
  if (value === undefined) return NOTHING
  const digits = unit === '/s' || value >= 100 ? 0 : 2
  // A benchmark is accurate to three digits at most.
  const known = value >= 1_000 ? Number(value.toPrecision(3)) : value
  return `${known.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`.replace(
    ' /s',
    '/s',
  )
}

export const machineLine = (machine: MachineFacts, othersPercent: number, withSqlite: boolean): string =>
  `${machine['processor']}, ${machine['cores']} cores, ${machine['memoryGigabytes']} GB, ${machine['platform']}; ` +
  `Node ${machine['node']}${withSqlite ? `, SQLite ${machine['sqlite']}` : ''}; other processes used ${othersPercent} % of it during the run.`

export const inText = (sections: readonly Section[], facts: readonly string[]): string =>
  [...sections.map(({ title, table }) => `${title}\n\n${aligned(table)}\n`), ...facts].join('\n')

const aligned = (table: Table): string => {
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)))
  return table
    .map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd())
    .join('\n')
}

export const inMarkdown = (sections: readonly Section[], facts: readonly string[]): string =>
  [
    ...sections.map(({ title, table }) => `#### ${title}\n\n${piped(table)}\n`),
    ...facts.map((fact) => `${fact.replace(/^Again: (.*)$/, 'Again: `$1`')}\n`),
  ].join('\n')

const piped = ([head, ...rows]: Table): string =>
  [head!, head!.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
