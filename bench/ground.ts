/** An address at which nothing is yet: a file, or a database on a temporary server. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../test/servers/postgres.ts'
import { postgresMeter } from './meter.ts'
import type { Field } from './systems.ts'

export interface Ground {
  readonly url: string
  /** Milliseconds of processor time so far, of this process and of the server. */
  processor(): Promise<number>
  /** After everything there is closed. */
  remove(): Promise<void>
}

export const groundOf = async (field: Field): Promise<Ground> => {
  if (field === 'postgres') {
    const server = await startPostgres()
    const meter = await postgresMeter(server.url)
    return {
      url: server.url,
      processor: async () => ofThisProcess() + ((await meter.read()).cpuSeconds ?? 0) * 1_000,
      remove: () => meter.close().then(() => server.remove()),
    }
  }
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  return {
    url: `sqlite:${join(folder, 'tasks.db')}`,
    processor: async () => ofThisProcess(),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

const ofThisProcess = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
