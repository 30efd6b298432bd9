/** Every process of a store is killed, and others open it: what was promised is in the store and nowhere else. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { cleanUp, folder, start, until } from './processes.ts'

cleanUp()

const LEASE = '500ms'

/** The store opened for a moment: nothing of it is open while processes die. */
const looking =
  (file: string) =>
  async <T>(look: (client: Client) => Promise<T>): Promise<T> => {
    const client = await connect(`sqlite:${file}`, { logger: silentLogger })
    try {
      return await look(client)
    } finally {
      await client.close()
    }
  }

test('[D11][J13][Q02] what a killed process submitted is run by the next, or expires at the instant that was promised', async () => {
  const file = join(folder(), 'restart.db')
  const look = looking(file)
  const submitter = start('submitter', { file, ttl: '1s' })
  const { mortal, immortal, expiresAt } = (await submitter.heard('submitted')) as unknown as {
    mortal: string
    immortal: string
    expiresAt: number
  }
  await submitter.kill()
  const [expiring, waiting] = await look((client) => Promise.all([client.get(mortal), client.get(immortal)]))
  expect([expiring.expiresAt, waiting.expiresAt]).toEqual([expiresAt, null])
  expect(waiting.status).toBe('pending')
  await until('the ttl is over', () => Date.now() > expiresAt)
  const worker = start('holder', { file, concurrency: 2 })
  await worker.heard('ran', (line) => line['task'] === immortal)
  await until('both have ended', () =>
    look(async (client) =>
      [await client.get(mortal), await client.get(immortal)].every(({ completedAt }) => completedAt !== null),
    ),
  )
  const ended = await look((client) => client.get(mortal))
  expect(ended).toMatchObject({ status: 'expired', attempts: 0, expiresAt })
  expect(ended.expiredAt).toBeGreaterThanOrEqual(expiresAt)
  expect(worker.said('ran').map((line) => line['task'])).toEqual([immortal])
})

test('[I10][R05] a task that sleeps when everybody is killed sleeps on, and is picked up when its delay is over, not before', async () => {
  const file = join(folder(), 'restart.db')
  const look = looking(file)
  const { id } = await look((client) => client.submit('nap', null))
  const first = start('holder', { file, concurrency: 1, nap: '4s' })
  await first.heard('naps')
  await until('the sleep is written', () => look(async (client) => (await client.get(id)).rescheduleCount === 1))
  const { availableAt } = await look((client) => client.get(id))
  await first.kill()
  expect(await look((client) => client.get(id))).toMatchObject({
    status: 'pending',
    lease: null,
    availableAt,
    rescheduleCount: 1,
    retryCount: 0,
    attempts: 1,
  })
  const second = start('holder', { file, concurrency: 1, nap: '1h' })
  const { attempt, at } = await second.heard('naps')
  expect(attempt).toBe(2)
  expect(at).toBeGreaterThanOrEqual(availableAt)
  expect(second.said('naps')).toHaveLength(1)
})

test('[A23] each run that a crash cut short is counted, and when the retries are used the task is dead', async () => {
  const file = join(folder(), 'restart.db')
  const look = looking(file)
  const { id } = await look((client) =>
    client.submit('hold', null, { maxRetries: 1, retryPolicy: { base: '1ms', jitter: 'none' } }),
  )
  const seen: unknown[] = []
  for (const attempt of [1, 2]) {
    const victim = start('holder', { file, concurrency: 1, holds: 9, leaseTtl: LEASE })
    await victim.heard('holds', (line) => line['attempt'] === attempt)
    const { attempts, retryCount, maxRetries, status } = await look((client) => client.get(id))
    seen.push({ attempts, retryCount, maxRetries, status })
    await victim.kill()
  }
  expect(seen).toEqual([
    { attempts: 1, retryCount: 0, maxRetries: 1, status: 'running' },
    { attempts: 2, retryCount: 1, maxRetries: 1, status: 'running' },
  ])
  const survivor = start('holder', { file, concurrency: 1, holds: 9, leaseTtl: LEASE })
  await until('the task has ended', () => look(async (client) => (await client.get(id)).completedAt !== null))
  const dead = await look((client) => client.get(id))
  expect(dead).toMatchObject({ status: 'failed', attempts: 2, retryCount: 1, lastError: { message: 'lease expired' } })
  expect(dead.history.filter(({ move }) => move === 'lose-lease').map(({ to }) => to)).toEqual(['pending', 'failed'])
  expect(survivor.said('holds')).toEqual([])
})
