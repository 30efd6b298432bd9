/** The systems of the deployment benchmark. */
import type { Server } from '../servers.ts'
import type { Field } from '../systems.ts'
import type { Adapter } from './adapter.ts'
import { bullMq } from './adapters/bullmq.ts'
import { graphileWorker } from './adapters/graphile-worker.ts'
import { holdfastPostgres, holdfastSqlite } from './adapters/holdfast.ts'
import { pgBoss } from './adapters/pg-boss.ts'

export interface DeployedSystem {
  readonly name: string
  readonly field: Field
  readonly server: Server
  /** Needs bench/peers to be installed. */
  readonly isPeer: boolean
  adapter(): Adapter
}

const LOCAL_QUEUE = 500
const onPostgres = { field: 'postgres', server: 'postgres' } as const

export const POSTGRES = 'holdfast-postgres'
export const SQLITE = 'holdfast-sqlite'
export const GRAPHILE = 'graphile-worker'
export const GRAPHILE_WITHOUT = 'graphile-worker-no-local-queue'
export const PG_BOSS = 'pg-boss'
export const BULLMQ = 'bullmq'

export const SYSTEMS: readonly DeployedSystem[] = [
  { name: POSTGRES, ...onPostgres, isPeer: false, adapter: holdfastPostgres },
  { name: SQLITE, field: 'sqlite', server: null, isPeer: false, adapter: holdfastSqlite },
  { name: GRAPHILE, ...onPostgres, isPeer: true, adapter: () => graphileWorker(LOCAL_QUEUE) },
  { name: GRAPHILE_WITHOUT, ...onPostgres, isPeer: true, adapter: () => graphileWorker(null) },
  { name: PG_BOSS, ...onPostgres, isPeer: true, adapter: pgBoss },
  { name: BULLMQ, field: 'postgres', server: 'redis', isPeer: true, adapter: bullMq },
]

export const systemNamed = (name: string): DeployedSystem => SYSTEMS.find((system) => system.name === name)!
