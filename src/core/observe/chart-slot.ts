/**
 * What happened in a stretch of time, counted for charts by queue and type. Slots of adjacent stretches merge into that of the whole, so a
 * day is made of its hours.
 */
import type { HistoryEntry, Instant } from '../task.ts'

/** `started` counts claims, `retried` runs that failed and are tried again, `ended` tasks that were cancelled or expired. */
export const CHART_COUNTS = ['submitted', 'started', 'completed', 'retried', 'died', 'ended'] as const
/** One kind of event that charts count. */
export type ChartCount = (typeof CHART_COUNTS)[number]

/** Counts of durations by size: `GROWTH` to the power of the index. Names are numbers. */
type Spread = Readonly<Record<string, number>>

interface Cell {
  readonly counts: Readonly<Partial<Record<ChartCount, number>>>
  readonly wait?: Spread
  readonly run?: Spread
}

export interface Depth {
  readonly ready: number
  readonly running: number
  readonly later: number
}

export interface ChartSlot {
  /** By queue and type. */
  readonly cells: Readonly<Record<string, Cell>>
  /** By queue, as last counted. */
  readonly depths?: Readonly<Record<string, Depth>>
  /** How many minutes were counted. */
  readonly minutes: number
}

/** One move, and how long the task had waited or run. */
export interface ChartMove {
  readonly queue: string
  readonly type: string
  readonly count: ChartCount
  readonly wait?: number
  readonly run?: number
  /** Whose run ended: another process may have noticed it. */
  readonly worker?: string
}

/** Counts of events by kind. */
export interface ChartTotals {
  readonly counts: Readonly<Record<ChartCount, number>>
  readonly wait: Percentiles | null
  readonly run: Percentiles | null
}

/** Milliseconds, accurate to a tenth. */
interface Percentiles {
  readonly p50: number
  readonly p95: number
}

/** A slot knows no more pairs of queue and type; further types of a queue count as `OTHER`. */
const MOST_PAIRS = 60
/** Names have no such character. */
const OTHER = '*'
const BETWEEN = ' '
const GROWTH = 2 ** 0.25

export const emptySlot = (minutes = 0): ChartSlot => ({ cells: {}, minutes })

/** null for a move that charts do not show: a release, a reschedule, an amendment. */
export const chartMoveOf = (
  {
    queue,
    type,
    history,
  }: { readonly queue: string; readonly type: string; readonly history: readonly HistoryEntry[] },
  entry: HistoryEntry,
): ChartMove | null => {
  const count = countOf(entry)
  if (count === null) return null
  const index = history.findIndex(({ n }) => n === entry.n)
  const before = history[index - 1]
  if (entry.move === 'claim') {
    if (before?.to !== 'pending' || before.n !== entry.n - 1) return { queue, type, count }
    return { queue, type, count, wait: Math.max(0, entry.at - (before.availableAt ?? before.at)) }
  }
  if (before?.to !== 'running' || count === 'submitted') return { queue, type, count }
  const claim = history.slice(0, index).findLast(({ move }) => move === 'claim')
  return claim === undefined
    ? { queue, type, count }
    : { queue, type, count, run: Math.max(0, entry.at - claim.at), worker: claim.by }
}

const countOf = ({ move, to }: HistoryEntry): ChartCount | null => {
  if (move === 'submit') return 'submitted'
  if (move === 'claim') return 'started'
  if (to === 'completed') return 'completed'
  if (to === 'failed') return 'died'
  if (to === 'cancelled' || to === 'expired') return 'ended'
  return move === 'fail' || move === 'time-out' || move === 'lose-lease' ? 'retried' : null
}

export const withMove = (slot: ChartSlot, { queue, type, count, wait, run }: ChartMove, weight = 1): ChartSlot => {
  const cell: Cell = {
    counts: { [count]: weight },
    ...(wait === undefined ? null : { wait: { [indexOf(wait)]: weight } }),
    ...(run === undefined ? null : { run: { [indexOf(run)]: weight } }),
  }
  return { ...slot, cells: withCell(slot.cells, queue + BETWEEN + type, cell) }
}

export const withDepths = (slot: ChartSlot, depths: Readonly<Record<string, Depth>>): ChartSlot => ({ ...slot, depths })

/** In the order of time: depths are those of the last slot that has some. */
export const merged = (slots: readonly ChartSlot[]): ChartSlot => {
  let cells: ChartSlot['cells'] = {}
  for (const slot of slots) for (const [pair, cell] of Object.entries(slot.cells)) cells = withCell(cells, pair, cell)
  const depths = slots.findLast((slot) => slot.depths !== undefined)?.depths
  const minutes = slots.reduce((sum, slot) => sum + slot.minutes, 0)
  return { cells, minutes, ...(depths === undefined ? null : { depths }) }
}

/** An estimate for a long stretch, divided into equal parts. */
export const scaled = ({ cells, ...slot }: ChartSlot, factor: number): ChartSlot => {
  const each = (counts: Readonly<Record<string, number>>): Record<string, number> =>
    Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count * factor]))
  const part = ({ counts, wait, run }: Cell): Cell => ({
    counts: each(counts),
    ...(wait && { wait: each(wait) }),
    ...(run && { run: each(run) }),
  })
  return { ...slot, cells: Object.fromEntries(Object.entries(cells).map(([pair, cell]) => [pair, part(cell)])) }
}

export interface ChartFilter {
  readonly queue?: string
  readonly type?: string
}

export const totalsOf = ({ cells }: ChartSlot, { queue, type }: ChartFilter = {}): ChartTotals => {
  const chosen = Object.entries(cells).flatMap(([pair, cell]) => {
    const [ofQueue, ofType] = pair.split(BETWEEN)
    return (queue === undefined || queue === ofQueue) && (type === undefined || type === ofType) ? [cell] : []
  })
  const { counts, wait, run } = chosen.reduce<Cell>((sum, cell) => added(sum, cell), { counts: {} })
  return {
    counts: Object.fromEntries(
      CHART_COUNTS.map((name) => [name, Math.round(counts[name] ?? 0)]),
    ) as ChartTotals['counts'],
    wait: percentilesOf(wait),
    run: percentilesOf(run),
  }
}

/** null: not counted in this slot. */
export const depthOf = ({ depths }: ChartSlot, queue?: string): Depth | null => {
  if (depths === undefined) return null
  const chosen = queue === undefined ? Object.values(depths) : depths[queue] === undefined ? [] : [depths[queue]]
  const sum = (name: keyof Depth): number => chosen.reduce((so, depth) => so + depth[name], 0)
  return { ready: sum('ready'), running: sum('running'), later: sum('later') }
}

export const namesIn = ({
  cells,
}: ChartSlot): { readonly queues: readonly string[]; readonly types: readonly string[] } => {
  const pairs = Object.keys(cells).map((pair) => pair.split(BETWEEN) as [string, string])
  const names = (n: 0 | 1): string[] =>
    [...new Set(pairs.map((pair) => pair[n]))].filter((name) => name !== OTHER).sort()
  return { queues: names(0), types: names(1) }
}

/** The start of the slot of this length that an instant belongs to. */
export const slotStart = (at: Instant, length: number): Instant => Math.floor(at / length) * length

const withCell = (cells: ChartSlot['cells'], pair: string, cell: Cell): ChartSlot['cells'] => {
  const name = Object.hasOwn(cells, pair) || Object.keys(cells).length < MOST_PAIRS ? pair : otherOf(cells, pair)
  const before = cells[name]
  return { ...cells, [name]: before === undefined ? cell : added(before, cell) }
}

/** With very many queues, everything further is one. */
const otherOf = (cells: ChartSlot['cells'], pair: string): string => {
  const ofQueue = pair.slice(0, pair.indexOf(BETWEEN) + 1) + OTHER
  return Object.hasOwn(cells, ofQueue) || Object.keys(cells).length < 2 * MOST_PAIRS ? ofQueue : OTHER + BETWEEN + OTHER
}

const added = (a: Cell, b: Cell): Cell => {
  const wait = sumOf(a.wait, b.wait)
  const run = sumOf(a.run, b.run)
  return { counts: sumOf(a.counts, b.counts) ?? {}, ...(wait && { wait }), ...(run && { run }) }
}

const sumOf = (a?: Readonly<Record<string, number>>, b?: Readonly<Record<string, number>>): Spread | undefined => {
  if (a === undefined || b === undefined) return a ?? b
  const sum: Record<string, number> = { ...a }
  for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

const indexOf = (duration: number): number => Math.round(Math.log(duration + 1) / Math.log(GROWTH))

const percentilesOf = (spread: Spread | undefined): Percentiles | null => {
  if (spread === undefined) return null
  const sizes = Object.entries(spread).sort(([a], [b]) => Number(a) - Number(b))
  const total = sizes.reduce((sum, [, count]) => sum + count, 0)
  const at = (part: number): number => {
    let seen = 0
    for (const [index, count] of sizes) {
      seen += count
      if (seen >= total * part) return Math.round(GROWTH ** Number(index) - 1)
    }
    return 0
  }
  return { p50: at(0.5), p95: at(0.95) }
}
