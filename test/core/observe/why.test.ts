/** Why a task is not running, told from the facts alone. */
import { describe, expect, it } from 'vitest'
import { type Circumstances, type Client, connect, reasonOf, type Task, TaskStatus } from '../../../src/index.ts'

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

  it('is one sentence, also where the error ends with a full stop', async () => {
    const client = await at(NOON)
    const { id } = await client.submit('mail', {}, { maxRetries: 0 })
    const dead = await (await client.claim(id, { workerId: 'worker-1' })).fail(new Error('The disk is full.'))
    expect(why(dead).sentence).toContain('with Error: The disk is full, and it will not run again')
  })

  it('says of a task that expired whether it had run', async () => {
    const client = await at(NOON)
    const unclaimed = await client.submit('mail', {})
    expect(why(await client.markExpired(unclaimed.id)).sentence).toMatch(/before a worker claimed it; an expired task/)
    const { id } = await client.submit('mail', {}, { ttl: '1m' })
    const asleep = await (await client.claim(id, { workerId: 'worker-1' })).reschedule('2m')
    expect(why(asleep, NOON + 60_000).sentence).toMatch(/while it waited again, after 1 run; the next worker/)
    expect(why(await client.markExpired(id)).sentence).toMatch(/before a worker claimed it again, after 1 run; an/)
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

  it('names the pause of the group, and the limit, beside what else keeps it waiting', async () => {
    const client = await at(NOON)
    const circumstances = { now: NOON, queuePaused: false, workers: [] }
    const later = await client.submit('mail', {}, { delay: '1m', group: 'acme' })
    expect(reasonOf(later, { ...circumstances, groupPaused: { until: null } })).toEqual({
      reason: 'scheduled',
      sentence: "It is scheduled for 2026-01-28T14:31:00Z (in 1m). Its group 'acme' is also paused.",
    })
    const ready = await client.submit('mail', {}, { group: 'acme' })
    // Workers that claim by hand do not register.
    expect(reasonOf(ready, { ...circumstances, heldBack: "group 'acme' has 1 of 1 running (w1)" })).toEqual({
      reason: 'no-worker',
      sentence:
        "It has been ready since 2026-01-28T14:30:00Z (now), but no live worker is registered. Also, group 'acme' has 1 of 1 running (w1).",
    })
  })
})
