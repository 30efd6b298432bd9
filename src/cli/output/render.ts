/** Formats output for a terminal: colours, tables, instants, durations. Independent of verbs. */
import { styleText } from 'node:util'

export { formatInstant as instant, formatRelative as relative } from '../../index.ts'

export type Style = Parameters<typeof styleText>[0]

/** Coloured only where the stream is a terminal; NO_COLOR and FORCE_COLOR are obeyed. */
export const paint = (style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string =>
  styleText(style, text, { stream })

/** Control characters, Unicode line breaks, and characters that change the writing direction. */
const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu
const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Untrusted text (errors, names, reasons) on one line, unable to control the terminal. */
export const printable = (text: string): string =>
  text.replace(CONTROL, (char) => NAMED[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

export const shorten = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest - 1)}…`

/** Truncates on a terminal only: piped output is read by programs. */
export const fitted = (text: string, longest: number): string => (process.stdout.isTTY ? shorten(text, longest) : text)

/** `+60s`, `+412ms`, `+1.5s`: a single unit, so that delays are easy to compare. */
export const delay = (duration: number): string =>
  duration > 0 && duration < 1_000 ? `+${duration}ms` : `+${duration / 1_000}s`

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => string
  readonly align?: 'right'
  readonly style?: (row: Row) => Style | null
}

/** Columns two spaces apart, as wide as their widest cell. Cells are text of one column per character. */
export const table = <Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string => {
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row)))
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...cells.map((line) => line[i]!.length)))
  const padded = (text: string, i: number): string => {
    if (columns[i]!.align === 'right') return text.padStart(widths[i]!)
    return i === columns.length - 1 ? text : text.padEnd(widths[i]!)
  }
  const head = columns.map(({ title }, i) => paint('dim', padded(title, i))).join('  ')
  const lines = rows.map((row, r) =>
    columns
      .map(({ style }, i) => {
        const text = padded(cells[r]![i]!, i)
        const wanted = style?.(row) ?? null
        return wanted === null ? text : paint(wanted, text)
      })
      .join('  ')
      .trimEnd(),
  )
  return `${[head.trimEnd(), ...lines].join('\n')}\n`
}

const STATUS_STYLES: Readonly<Record<string, Style>> = {
  completed: 'green',
  running: 'cyan',
  failed: 'red',
  dead: 'red',
  expired: 'yellow',
  retrying: 'yellow',
  cancelled: 'magenta',
  scheduled: 'blueBright',
  parked: 'blueBright',
  archived: 'dim',
}

export const statusStyle = (status: string): Style | null => STATUS_STYLES[status] ?? null

export const out = (text: string): void => void process.stdout.write(`${text}\n`)
export const err = (text: string): void => void process.stderr.write(`${text}\n`)
export const outJson = (value: unknown): void => out(JSON.stringify(value, null, 2))
