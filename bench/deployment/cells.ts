/** The cells of the deployment benchmark: what is measured, as data. */
import type { Shape } from './tasks.ts'

export type Kind = 'drain' | 'mix' | 'steady' | 'insert-batch' | 'idle' | 'depth'

export interface Cell {
  readonly name: string
  readonly what: string
  readonly kind: Kind
  readonly shape: Shape
  /** Worker processes. */
  readonly processes: number
  /** Submits per second, for cells with one-by-one submits. */
  readonly rate: number
}

/** The matrix of the drain cells. */
export const TYPES: readonly number[] = [1, 2, 10, 50]
export const PROCESSES: readonly number[] = [1, 2, 4]
export const QUEUES: readonly number[] = [1, 5]
export const RATES: readonly number[] = [5, 50, 500, 2_000]

/** The number of types of a medium deployment, used by all cells outside the matrix. */
const SOME_TYPES = 10
const TEN_TYPES: Shape = { types: SOME_TYPES, queues: 1, isMixed: false }

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`

export const drainName = (types: number, processes: number, queues: number): string =>
  [
    'drain',
    counted(types, 'type', 'types'),
    counted(processes, 'process', 'processes'),
    counted(queues, 'queue', 'queues'),
  ]
    .join('/')
    .replaceAll(' ', '-')

export const steadyName = (rate: number): string => `steady/${rate}-per-second`

const drain = (types: number, processes: number, queues: number): Cell => ({
  name: drainName(types, processes, queues),
  what: [
    counted(types, 'type', 'types'),
    counted(processes, 'process', 'processes'),
    counted(queues, 'queue', 'queues'),
  ].join(', '),
  kind: 'drain',
  shape: { types, queues, isMixed: false },
  processes,
  rate: 0,
})

const other = (kind: Kind, what: string, rest: Partial<Cell> = {}): Cell => ({
  name: kind,
  what,
  kind,
  shape: TEN_TYPES,
  processes: 1,
  rate: 0,
  ...rest,
})

/** Measured in this order in every round, so cells that are compared are next to each other. */
export const CELLS: readonly Cell[] = [
  ...QUEUES.flatMap((queues) =>
    PROCESSES.flatMap((processes) => TYPES.map((types) => drain(types, processes, queues))),
  ),
  other('mix', '10 types, 2 processes, priorities, failures, expiry, delays, large payloads', {
    shape: { ...TEN_TYPES, isMixed: true },
    processes: 2,
  }),
  ...RATES.map((rate) =>
    other('steady', `${rate.toLocaleString('en')} submits a second`, { name: steadyName(rate), rate }),
  ),
  other('insert-batch', '10 types, calls of 1,000'),
  other('idle', '10 types'),
  other('depth', '10 types'),
]

export const KINDS: readonly Kind[] = [...new Set(CELLS.map(({ kind }) => kind))]
