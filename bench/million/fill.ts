/** Fills a store through its contract with prepared records: submitting and running them would take an hour. */
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { insertionOf, QUEUES } from './mix.ts'

const BATCH = 2_000
const AT_ONCE = 3
const SCHEDULES = 20
const WORKERS = 10

const openStore = (address: string): Promise<Store> =>
  address.startsWith('sqlite:')
    ? openSqlite(address.slice('sqlite:'.length))
    : openPostgres(address, { create: true, listen: false })

export const fill = async (address: string, total: number, now: number): Promise<void> => {
  const store = await openStore(address)
  let next = 0
  const some = async (): Promise<void> => {
    while (next < total) {
      const from = next
      next += BATCH
      const batch = Array.from({ length: Math.min(BATCH, total - from) }, (_, i) => insertionOf(from + i, total, now))
      const inserted = await store.insert(batch, { now })
      const bad = inserted.find(({ outcome }) => outcome !== 'created')
      if (bad !== undefined) throw new Error(`a task was not created: ${JSON.stringify(bad)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, some))
  for (const queue of QUEUES) await store.documents.put(`queue/${queue}`, '{}', 0)
  for (let n = 0; n < WORKERS; n++) await store.documents.put(`worker/worker-${n}`, workerDocument(n, now), 0)
  await store.close()
  const client: Client = await connect(address, { logger: silentLogger })
  for (let n = 0; n < SCHEDULES; n++)
    await client.schedules.create({ id: `schedule-${n}`, cron: `${n} 3 * * *`, type: 'make-report', input: { n } })
  await client.close()
}

/** A registration as a worker writes it, valid for the length of the benchmark. */
const workerDocument = (n: number, now: number): string =>
  JSON.stringify({
    id: `worker-${n}`,
    types: ['send-mail', 'make-report'],
    queues: QUEUES,
    concurrency: 50,
    version: '0.0.0',
    host: 'host',
    pid: 1_000 + n,
    startedAt: now,
    beatAt: now + 10 * 3_600_000,
  })
