/** Why a task is not running, told from the facts alone. */
import { describe, expect, it } from 'vitest'
import { type Circumstances, type Client, connect, reasonOf, type Task, TaskStatus } from '../../src/index.ts'

const NOON = Date.parse('2026-01-28T14:30:00Z')

describe('the reason why a task is not running', () => {
  const at = (now: number, random = 0.5): Promise<Client> =>
    connect('memory:', {
      name: 'test',
      clock: { wall: () => now, mono: () => now, after: () => () => {} },
      random: () => random,
    })
  const why = (task: Task, now = NOON, queuePaused = false, workers: Circumstances['workers'] = []) =>
    reasonOf(task, { now, queuePaused, workers })

  it('is told for each way of waiting', async () => {
    const client = await at(NOON)
    const ready = await client.submit('mail', {})
    expect(why(ready)).toMatchObject({ reason: 'no-worker' })
    expect(why(ready, NOON, true)).toMatchObject({
      reason: 'queue-paused',
      sentence: expect.stringContaining("Its queue 'default' is paused"),
    })
    const short = await client.submit('mail', {}, { ttl: '1m', delay: '2m' })
    expect(why(short).sentence).toBe(
      'It is scheduled for 2026-01-28T14:32:00Z (in 2m). It will expire first, at 2026-01-28T14:31:00Z (in 1m).',
    )
    expect(why(short, NOON + 60_000)).toMatchObject({ reason: 'past-expiry' })
    const failed = await (await client.claim(ready.id, { workerId: 'worker-1' })).fail(new Error('boom\nat x'))
    expect(why(failed).sentence).toBe(
      'It is in backoff after attempt 1 with Error: boom; retry 1 of 3 is due at 2026-01-28T14:30:00.250Z (in 250ms).',
    )
  })

  it('is honest about a lease that has lapsed', async () => {
    const client = await at(NOON)
    const { id } = await client.submit('mail', {})
    await client.claim(id, { workerId: 'worker-1', leaseTtl: '5s' })
    const task = await client.get(id)
    expect(why(task).sentence).toBe('It is running: worker-1 holds its lease until 2026-01-28T14:30:05Z (in 5s).')
    expect(why(task, NOON + 6_000)).toMatchObject({
      reason: 'lease-lapsed',
      sentence: expect.stringContaining('worker-1 has not renewed the lease'),
    })
  })

  it('is there for every status', async () => {
    const client = await at(NOON)
    const { id } = await client.submit('mail', {})
    await client.cancel(id)
    expect(why(await client.get(id)).reason).toBe('cancelled')
    expect(why(await client.archive(id)).sentence).toBe('It is archived; before that it was cancelled.')
    expect(Object.keys(TaskStatus)).toHaveLength(7)
  })

  it('names what is missing when no worker could run it', async () => {
    const client = await at(NOON)
    const task = await client.submit('mail', {})
    const worker = (types: string[], queues: string[]) => ({ types, queues })
    const since = 'It has been ready since 2026-01-28T14:30:00Z (now), '
    expect(why(task, NOON, false, []).sentence).toBe(`${since}but no live worker is registered.`)
    expect(why(task, NOON, false, [worker(['other'], ['default'])]).sentence).toBe(
      `${since}but no live worker handles 'mail' (1 registered).`,
    )
    expect(why(task, NOON, false, [worker(['mail'], ['slow']), worker(['other'], ['default'])]).sentence).toBe(
      `${since}but no live worker that handles 'mail' serves queue 'default' (1 registered elsewhere).`,
    )
    expect(why(task, NOON, false, [worker(['mail', 'other'], ['slow', 'default'])])).toEqual({
      reason: 'ready',
      sentence: `${since}and one live worker serves queue 'default' with a handler for 'mail': it is waiting its turn.`,
    })
  })
})
