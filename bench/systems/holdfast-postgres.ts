/** Holdfast on PostgreSQL: with its defaults, and with completed tasks removed at once, like the peers that delete them. */
import type { RetentionOptions } from '../../src/index.ts'
import type { System } from '../system.ts'
import { loadHoldfast } from './holdfast.ts'
import { holdfastSystem } from './holdfast-system.ts'

const LEASE = 'lease, heartbeat, fencing token'
const DURABILITY = 'fsync per commit'

const onPostgres = async (
  name: string,
  rows: string,
  history: string,
  retention: RetentionOptions | null,
): Promise<System> => {
  const { connect, silentLogger } = await loadHoldfast()
  return holdfastSystem({
    name,
    keeps: { durability: DURABILITY, lease: LEASE, history, rows },
    keepsCompleted: retention === null,
    connect: ({ database }) =>
      connect(database, { create: true, logger: silentLogger, ...(retention === null ? null : { retention }) }),
  })
}

export const holdfastPostgres = (): Promise<System> =>
  onPostgres('holdfast-postgres', 'completed rows with output', 'every move', null)

export const holdfastPostgresNotKept = (): Promise<System> =>
  onPostgres('holdfast-postgres, completed not kept', 'deleted on success', 'every move, until success', {
    completed: 0,
  })
