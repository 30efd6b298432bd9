/** A store with many ended tasks, and typical queries: for tests that count requests. */
import type { Client } from '../../../src/index.ts'
import { createMetrics } from '../../../src/metrics/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { task } from '../../../src/testing/conformance/build.ts'

export const ENDED = 20_000
const DEAD = 100
const BATCH = 50
const DAY = 86_400_000

const error = (n: number) => ({ name: 'Error', message: n % 2 ? 'no' : 'timed out', at: n, attempt: 1 })

/** As workers leave them over three days: segments of fifty tasks of one minute, one in two hundred failed. */
export const keepMany = async (client: Client, store: Store, now: number): Promise<void> => {
  const begin = now - 3 * DAY
  for (let n = 0; n < ENDED; n += BATCH) {
    const at = Math.floor(begin + (n / ENDED) * (3 * DAY - 60_000))
    const tasks = Array.from({ length: BATCH }, (_, i) => {
      const status = (n + i) % (ENDED / DEAD) === 0 ? 'failed' : 'completed'
      const stamps = { createdAt: at - 1_000, availableAt: at - 1_000, updatedAt: at, completedAt: at }
      return task(n + i + 1, { ...stamps, status, ...(status === 'failed' ? { lastError: error(n / BATCH) } : null) })
    })
    await store.insert(
      tasks.map((one) => ({ task: one })),
      { now: at },
    )
  }
  // So that stats know the queue.
  await client.submit('other', null, { queue: 'default', delay: '1h' })
}

export interface Question {
  readonly what: string
  ask(client: Client, store: Store): Promise<unknown>
  /** The most requests that it may take with the index. */
  readonly most: { readonly LIST: number; readonly GET: number }
}

export const QUESTIONS: readonly Question[] = [
  {
    what: 'a round of `retention` that removes nothing',
    ask: (client) => client.prune({ olderThan: '7d', status: 'completed' }),
    most: { LIST: 1, GET: 0 },
  },
  { what: '`stats`', ask: (client) => client.stats(), most: { LIST: 5, GET: 6 } },
  { what: 'the first `/metrics`', ask: (client) => createMetrics(client).text(), most: { LIST: 6, GET: 10 } },
  {
    what: '`list --status failed`, a page of 50',
    ask: (client) => client.list({ status: 'failed', limit: 50 }),
    most: { LIST: 2, GET: 120 },
  },
  {
    what: '`dead --groups` of 100 dead letters',
    ask: (client) => client.deadLetters.groups(),
    most: { LIST: 2, GET: 202 },
  },
  {
    what: 'a count of the completed ones',
    ask: (client) => client.count({ status: 'completed' }),
    most: { LIST: 2, GET: 2 },
  },
  {
    what: 'one poll of `tail`',
    ask: async (_, store) => {
      const { at } = await store.now()
      return store.list({ updatedAfter: at - 2_000 }, { order: 'oldest', limit: 500, now: null })
    },
    most: { LIST: 2, GET: 2 },
  },
]
