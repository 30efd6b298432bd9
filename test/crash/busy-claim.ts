/** A process computes for longer than a lease while the reply to its claim waits, and another looks for lapsed leases. */
import { type Client, connect, silentLogger, type Task } from '../../src/index.ts'
import { openAt } from './address.ts'
import type { Plant } from './planted.ts'
import { start, until } from './processes.ts'

export interface BusyClaim {
  readonly lease: number
  readonly computes: number
  readonly plant?: Plant
}

const TASKS = 5
/** A lease that is renewed is never over for so long. */
const LAPSED = 500

/** On S3 and NATS a look finds lapsed leases of the types that it asks for: those of others are taken by their ids. */
const takeLapsed = async (client: Client, tasks: readonly Task[]): Promise<void> => {
  const now = await client.now()
  for (const { id, lease } of tasks)
    if (lease !== null && lease.expiresAt < now - LAPSED) await client.claim(id, { workerId: 'other' }).catch(() => {})
}

/** `file` is a path, or the URL of a server. What became of the tasks, and how many runs there were. */
export const computeBehindClaim = async (file: string, { lease, computes, plant = 'none' }: BusyClaim) => {
  const client = await connect(await openAt(file), { logger: silentLogger })
  const leaseTtl = `${lease}ms`
  // It serves none of these tasks, but takes leases that have lapsed.
  const other = client.worker({ leaseTtl }).handle('nothing', () => {})
  other.start()
  const child = start('busy-submitter', { file, leaseTtl, tasks: TASKS, computes, plant })
  await child.heard('ready')
  const begun = performance.now()
  // Whoever takes leases has had contact for one of their lengths.
  await until('contact has lasted', () => performance.now() - begun > lease)
  child.signal('SIGUSR2')
  const tasks = async () => (await client.list({ limit: 100 })).tasks
  await until('all have ended', async () => {
    const all = await tasks()
    await takeLapsed(client, all)
    return all.length === TASKS && all.every(({ completedAt }) => completedAt !== null)
  })
  const all = await Promise.all((await tasks()).map(({ id }) => client.get(id)))
  await child.heard('computed')
  child.signal('SIGTERM')
  await child.end()
  await other.stop()
  await client.close()
  return {
    completed: all.filter(({ status }) => status === 'completed').length,
    failed: all.filter(({ status }) => status === 'failed').length,
    retries: all.reduce((sum, { retryCount }) => sum + retryCount, 0),
    moves: [...new Set(all.flatMap(({ history }) => history.map(({ move }) => move)))],
    runs: child.said('ran').length,
  }
}
