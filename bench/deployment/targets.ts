/** The targets of Holdfast, as data. */
import { drainName, RATES, steadyName } from './cells.ts'
import type { FigureName } from './figures.ts'
import { BULLMQ, GRAPHILE, GRAPHILE_WITHOUT, PG_BOSS, POSTGRES, SQLITE } from './systems.ts'

/** One figure of one system in one cell. */
export interface Ref {
  readonly cell: string
  readonly system: string
  readonly figure: FigureName
}

export interface Target {
  readonly name: string
  readonly of: Ref
  /** The figure is divided by this one, or by the best of several. Without it, the figure is used as it is. */
  readonly to?: readonly Ref[]
  readonly least?: number
  readonly most?: number
  readonly under?: number
}

const rate = (cell: string, system: string): Ref => ({ cell, system, figure: 'tasks/s' })
const ONE_TYPE = drainName(1, 1, 1)

/** One process, one queue: compared with our own rate with one type, and with graphile-worker's in the same cell. */
const manyTypes = [
  [2, 0.9],
  [10, 0.85],
  [50, 0.75],
].flatMap(([types, least]): Target[] => {
  const cell = drainName(types!, 1, 1)
  return [
    {
      name: `PostgreSQL, ${types} types to one type`,
      of: rate(cell, POSTGRES),
      to: [rate(ONE_TYPE, POSTGRES)],
      least: least!,
    },
    {
      name: `PostgreSQL, ${types} types to graphile-worker`,
      of: rate(cell, POSTGRES),
      to: [rate(cell, GRAPHILE)],
      least: 1.5,
    },
  ]
})

const steady = RATES.flatMap((perSecond): Target[] => {
  const at = (system: string, figure: FigureName): Ref => ({ cell: steadyName(perSecond), system, figure })
  const load = `${perSecond.toLocaleString('en')} a second`
  return [
    {
      name: `PostgreSQL, ${load}, p50 to graphile-worker's better`,
      of: at(POSTGRES, 'p50'),
      to: [at(GRAPHILE, 'p50'), at(GRAPHILE_WITHOUT, 'p50')],
      most: 1,
    },
    ...(perSecond <= 500 ? [{ name: `PostgreSQL, ${load}, p99`, of: at(POSTGRES, 'p99'), most: 30 }] : []),
    { name: `SQLite, ${load}, p50`, of: at(SQLITE, 'p50'), most: 3 },
    { name: `SQLite, ${load}, p99`, of: at(SQLITE, 'p99'), most: 15 },
  ]
})

export const TARGETS: readonly Target[] = [
  ...manyTypes,
  {
    name: 'PostgreSQL, 10 types, 4 processes to 1 process',
    of: rate(drainName(10, 4, 1), POSTGRES),
    to: [rate(drainName(10, 1, 1), POSTGRES)],
    least: 0.9,
  },
  {
    name: 'PostgreSQL, 10 types, 4 processes to graphile-worker',
    of: rate(drainName(10, 4, 1), POSTGRES),
    to: [rate(drainName(10, 4, 1), GRAPHILE)],
    least: 1.5,
  },
  ...[1, 4].map((processes) => ({
    name: `SQLite, 10 types, ${processes === 1 ? '1 process' : `${processes} processes`} to one type, one process`,
    of: rate(drainName(10, processes, 1), SQLITE),
    to: [rate(ONE_TYPE, SQLITE)],
    least: 0.85,
  })),
  { name: 'PostgreSQL, mix to graphile-worker', of: rate('mix', POSTGRES), to: [rate('mix', GRAPHILE)], least: 1.4 },
  ...[POSTGRES, SQLITE].map(
    (system): Target => ({
      name: `${system === POSTGRES ? 'PostgreSQL' : 'SQLite'}, many waiting to few`,
      of: { cell: 'depth', system, figure: 'tasks/s with many waiting' },
      to: [{ cell: 'depth', system, figure: 'tasks/s with few waiting' }],
      least: 0.8,
    }),
  ),
  ...steady,
  {
    name: 'PostgreSQL, batch insert to the best peer',
    of: rate('insert-batch', POSTGRES),
    to: [GRAPHILE, GRAPHILE_WITHOUT, PG_BOSS, BULLMQ].map((peer) => rate('insert-batch', peer)),
    least: 1.5,
  },
  {
    name: 'PostgreSQL, idle worker, CPU of one core',
    of: { cell: 'idle', system: POSTGRES, figure: 'CPU of one core' },
    under: 1,
  },
]

/** The drain cell with the highest value. */
export const PEAK_RSS = { name: 'PostgreSQL, peak RSS of a draining worker, largest cell', under: 160 } as const
