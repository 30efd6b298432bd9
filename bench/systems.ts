/** The systems of the benchmark. A new one is a file in systems/ and a line here. */
import type { Server } from './servers.ts'
import type { System } from './system.ts'
import { bullMq } from './systems/bullmq.ts'
import { graphileWorker, graphileWorkerLargeQueue } from './systems/graphile-worker.ts'
import { holdfastPostgres, holdfastPostgresNotKept } from './systems/holdfast-postgres.ts'
import { holdfastSqlite } from './systems/holdfast-sqlite.ts'
import { pgBoss, pgBossLargeBatches } from './systems/pg-boss.ts'
import { plainjob } from './systems/plainjob.ts'
import { rawSqlite } from './systems/raw-sqlite.ts'

/** Systems are compared with those that compete for the same users. */
export type Field = 'sqlite' | 'postgres'

export interface Entrant {
  readonly name: string
  readonly field: Field
  readonly server: Server
  /** Needs bench/peers to be installed. */
  readonly isPeer: boolean
  /** Configured beyond what its documentation shows: compared, but no target is set against it. */
  readonly isBeyond?: true
  /** Only these workloads; in the others it equals another entry. */
  readonly only?: readonly string[]
  make(): Promise<System>
}

const embedded = { field: 'sqlite', server: null } as const
const served = { field: 'postgres', server: 'postgres' } as const

export const ENTRANTS: readonly Entrant[] = [
  { name: 'holdfast-sqlite', ...embedded, isPeer: false, make: holdfastSqlite },
  { name: 'raw-sqlite', ...embedded, isPeer: false, make: rawSqlite },
  { name: 'plainjob', ...embedded, isPeer: true, make: plainjob },
  { name: 'holdfast-postgres', ...served, isPeer: false, make: holdfastPostgres },
  {
    name: 'holdfast-postgres, completed not kept',
    ...served,
    isPeer: false,
    only: ['drain-100'],
    make: holdfastPostgresNotKept,
  },
  { name: 'graphile-worker', ...served, isPeer: true, make: graphileWorker },
  {
    name: 'graphile-worker, local queue of 5,000',
    ...served,
    isPeer: true,
    isBeyond: true,
    only: ['drain-100'],
    make: graphileWorkerLargeQueue,
  },
  { name: 'pg-boss', ...served, isPeer: true, make: pgBoss },
  {
    name: 'pg-boss, batches of 5,000',
    ...served,
    isPeer: true,
    isBeyond: true,
    only: ['drain-100'],
    make: pgBossLargeBatches,
  },
  { name: 'bullmq', field: 'postgres', server: 'redis', isPeer: true, make: bullMq },
]
