/** How much is measured: all of it, or the shortened form. */
import { type Cell, drainName } from './cells.ts'
import { type DeployedSystem, GRAPHILE, GRAPHILE_WITHOUT } from './systems.ts'

export interface Plan {
  readonly tasks: number
  readonly runs: number
  steadySeconds(rate: number): number
  readonly idle: { readonly settleMs: number; readonly ms: number }
  readonly depth: { readonly few: number; readonly many: number; readonly first: number }
  takesPart(cell: Cell, system: DeployedSystem): boolean
  /** What is skipped, for the report: in general, and of the peers. */
  readonly leftOut: readonly string[]
  readonly peersLeftOut: readonly string[]
}

/** With few submits per second, percentiles need more time. */
const SLOW_RATE = 5

export const FULL: Plan = {
  tasks: 40_000,
  runs: 5,
  steadySeconds: (rate) => (rate <= SLOW_RATE ? 20 : 10),
  idle: { settleMs: 2_000, ms: 10_000 },
  depth: { few: 10_000, many: 1_000_000, first: 5_000 },
  takesPart: ({ kind }, { isPeer }) => kind !== 'depth' || !isPeer,
  leftOut: [],
  peersLeftOut: [],
}

/** The cells in which a target compares Holdfast with graphile-worker, and one in which all peers are seen. */
const COMPARED: readonly string[] = [2, 10, 50].map((types) => drainName(types, 1, 1)).concat(drainName(10, 4, 1))
const WITH_ALL_PEERS = drainName(10, 1, 1)

export const QUICK: Plan = {
  ...FULL,
  tasks: 8_000,
  runs: 1,
  steadySeconds: (rate) => (rate <= SLOW_RATE ? 5 : 3),
  idle: { settleMs: 1_000, ms: 3_000 },
  depth: { few: 10_000, many: 100_000, first: 5_000 },
  takesPart({ kind, name }, { name: system, isPeer }) {
    if (!isPeer) return true
    if (kind === 'drain') return name === WITH_ALL_PEERS || (system === GRAPHILE && COMPARED.includes(name))
    if (kind === 'steady') return system === GRAPHILE || system === GRAPHILE_WITHOUT
    return kind === 'insert-batch' || (kind === 'mix' && system === GRAPHILE)
  },
  leftOut: [
    'Shortened (--quick): one run with fewer tasks and shorter loads, and depth with 100,000 instead of 1,000,000. The figures are rough.',
  ],
  peersLeftOut: [
    `Left out (--quick): peers in drain cells other than ${WITH_ALL_PEERS}, but for graphile-worker where a target compares it;`,
    'pg-boss and BullMQ under steady load; peers but graphile-worker in the mix; idle peers.',
  ],
}
