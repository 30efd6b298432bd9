/** Holdfast on its embedded store, with its defaults. */
import { join } from 'node:path'
import type { System } from '../system.ts'
import { loadHoldfast } from './holdfast.ts'
import { holdfastSystem } from './holdfast-system.ts'

export const holdfastSqlite = async (): Promise<System> => {
  const { connect, silentLogger } = await loadHoldfast()
  return holdfastSystem({
    name: 'holdfast-sqlite',
    keeps: {
      durability: 'fsync per commit (WAL, FULL)',
      lease: 'lease, heartbeat, fencing token',
      history: 'every move',
      rows: 'completed rows with output',
    },
    keepsCompleted: true,
    connect: ({ dir }) => connect(`sqlite:${join(dir, 'holdfast.db')}`, { logger: silentLogger }),
  })
}
