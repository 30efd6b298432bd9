/** What the dumps of earlier schemas hold (test/sqlite/fixtures, test/postgres/fixtures), and that it still works. */
import { expect } from 'vitest'
import type { Client } from '../src/index.ts'

const id = (n: number): string => `0192a000-0000-7000-8000-${String(n).padStart(12, '0')}`

export const expectFixture = async (client: Client): Promise<void> => {
  const shown = async (n: number) => (await client.get(id(n))).toJSON()
  expect(await shown(1)).toMatchObject({ type: 'plain', status: 'pending', input: { n: 1 }, maxRetries: 3 })
  expect(await shown(2)).toMatchObject({
    queue: 'media',
    priority: 7,
    input: { n: 2, text: 'naïve ☃ "quoted" \\ \u0000' },
    maxRetries: 9,
    maxReschedules: 4,
    timeout: null,
    retryPolicy: { base: 1_000, multiplier: 2, max: 60_000, jitter: 'equal' },
    tags: { customer: 'a"b' },
  })
  expect(await shown(4)).toMatchObject({ status: 'failed', lastError: { message: 'broken for good' } })
  expect(await shown(5)).toMatchObject({ status: 'cancelled' })
  expect(await shown(6)).toMatchObject({ status: 'expired' })
  expect(await shown(7)).toMatchObject({ status: 'archived', archivedFrom: 'cancelled' })
  expect(await shown(8)).toMatchObject({ status: 'running', lease: { workerId: 'w-gone' } })
  expect((await client.get(id(9))).input).toEqual(new Uint8Array([0, 1, 255]))
  expect(await shown(11)).toMatchObject({ status: 'completed', output: { ok: 11 } })
  // A key whose task is there, and one whose task was removed.
  expect(
    await client.submit('with-options', { n: 2, text: 'naïve ☃ "quoted" \\ \u0000' }, { idempotencyKey: 'order-2' }),
  ).toMatchObject({
    id: id(2),
    deduplicated: true,
  })
  await expect(client.submit('removed', { n: 10 }, { idempotencyKey: 'order-10' })).resolves.toMatchObject({
    deduplicated: true,
  })
  expect((await client.stats()).find(({ queue }) => queue === 'media')).toMatchObject({ paused: true })
  expect((await client.schedules.get('nightly')).toJSON()).toMatchObject({
    cron: '0 3 * * *',
    timezone: 'Europe/Berlin',
  })
  // What waits runs, and the lease of the worker that is gone comes back.
  const ran: number[] = []
  await client
    .worker()
    .handle('plain', () => ran.push(1))
    .handle('bytes', () => ran.push(9))
    .drain()
  expect(ran.sort()).toEqual([1, 9])
}
