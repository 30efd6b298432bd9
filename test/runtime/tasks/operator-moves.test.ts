import { describe, expect, it } from 'vitest'
import { type Client, PermanentError, type Task } from '../../../src/index.ts'
import { begin, movesOf, refuses, shown } from '../setup.ts'

const UNKNOWN = '01900000-0000-7000-8000-000000000000'

/** One task in each status. */
const oneOfEach = async (client: Client): Promise<Record<string, Task>> => {
  const fresh = () => client.submit('work', {}, { maxRetries: 1 })
  const claimed = async (task: Task) => client.claim(task.id, { workerId: 'w', leaseTtl: '1h' })
  const [pending, running, completed, failed, cancelled, expired, archived] = await Promise.all(
    Array.from({ length: 7 }, fresh),
  )
  await claimed(running!)
  await (await claimed(completed!)).complete()
  await (await claimed(failed!)).fail(new PermanentError('no'))
  await client.cancel(cancelled!.id)
  await client.markExpired(expired!.id)
  await client.cancel(archived!.id)
  await client.archive(archived!.id)
  return {
    pending: pending!,
    running: running!,
    completed: completed!,
    failed: failed!,
    cancelled: cancelled!,
    expired: expired!,
    archived: archived!,
  }
}

const outcomes = async (client: Client, call: (id: string) => Promise<unknown>): Promise<Record<string, string>> => {
  const said: Record<string, string> = {}
  for (const [status, { id }] of Object.entries(await oneOfEach(client))) {
    said[status] = await call(id).then(
      async () =>
        client.get(id).then(
          (task) => task.status,
          () => 'gone',
        ),
      (error: { code: string }) => error.code,
    )
  }
  await refuses('TASK_NOT_FOUND')(call(UNKNOWN))
  return said
}

describe('what each move says to each status', () => {
  it('[C07][C08][H09] retry', async () => {
    const { client } = await begin()
    expect(await outcomes(client, (id) => client.retry(id))).toEqual({
      pending: 'CANNOT_RETRY',
      running: 'pending',
      completed: 'CANNOT_RETRY',
      failed: 'pending',
      cancelled: 'pending',
      expired: 'CANNOT_RETRY',
      archived: 'CANNOT_RETRY',
    })
  })

  it('cancel', async () => {
    const { client } = await begin()
    expect(await outcomes(client, (id) => client.cancel(id))).toEqual({
      pending: 'cancelled',
      running: 'running',
      completed: 'CANNOT_CANCEL',
      failed: 'CANNOT_CANCEL',
      cancelled: 'cancelled',
      expired: 'CANNOT_CANCEL',
      archived: 'CANNOT_CANCEL',
    })
  })

  it('markExpired', async () => {
    const { client } = await begin()
    const not = 'CANNOT_EXPIRE'
    expect(await outcomes(client, (id) => client.markExpired(id))).toEqual({
      pending: 'expired',
      running: not,
      completed: not,
      failed: not,
      cancelled: not,
      expired: not,
      archived: not,
    })
  })

  it('archive, unarchive', async () => {
    const { client } = await begin()
    expect(await outcomes(client, (id) => client.archive(id))).toEqual({
      pending: 'TASK_NOT_TERMINAL',
      running: 'TASK_NOT_TERMINAL',
      completed: 'archived',
      failed: 'archived',
      cancelled: 'archived',
      expired: 'archived',
      archived: 'archived',
    })
    const not = 'CANNOT_UNARCHIVE'
    expect(await outcomes(client, (id) => client.unarchive(id))).toEqual({
      pending: not,
      running: not,
      completed: not,
      failed: not,
      cancelled: not,
      expired: not,
      archived: 'cancelled',
    })
  })

  it('[U03] delete', async () => {
    const { client } = await begin()
    expect(await outcomes(client, (id) => client.delete(id))).toEqual({
      pending: 'TASK_NOT_TERMINAL',
      running: 'TASK_NOT_TERMINAL',
      completed: 'gone',
      failed: 'gone',
      cancelled: 'gone',
      expired: 'gone',
      archived: 'gone',
    })
  })
})

describe('retry', () => {
  it('[C08][C15][H09] of a failed task needs retries left, and uses one', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', {}, { maxRetries: 1 })
    await (await client.claim(id, { workerId: 'w' })).fail(new PermanentError('no'))
    expect(shown(await client.retry(id))).toMatchObject({
      status: 'pending',
      retryCount: 1,
      completedAt: null,
      lastError: { message: 'no' },
    })
    await (await client.claim(id, { workerId: 'w' })).fail(new Error('no'))
    await refuses('MAX_ATTEMPTS_REACHED', /replay/)(client.retry(id))
    expect((await client.get(id)).status).toBe('failed')
  })

  it('[C07][F17] of a running task takes the lease away, without backoff', async () => {
    const { client, clock } = await begin({ random: () => 0.9 })
    const { id } = await client.submit('work', {})
    const lease = await client.claim(id, { workerId: 'stuck' })
    expect(shown(await client.retry(id))).toMatchObject({
      status: 'pending',
      retryCount: 1,
      availableAt: clock.wall(),
      lastError: { message: 'retried by operator' },
    })
    await refuses('STALE_LEASE')(lease.complete('too late'))
    const next = await client.claim(id, { workerId: 'other' })
    expect(next.fence).toBe(2)
  })

  it('of a running task without retries left is refused, and the task runs on', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', {}, { maxRetries: 0 })
    const lease = await client.claim(id, { workerId: 'slow' })
    await expect(client.retry(id)).rejects.toMatchObject({ code: 'MAX_ATTEMPTS_REACHED' })
    expect(await client.get(id)).toMatchObject({ status: 'running', revision: 2 })
    expect((await lease.complete('done')).status).toBe('completed')
  })
})

describe('archive', () => {
  it('hides from default lists and goes back where it was', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', {})
    await (await client.claim(id, { workerId: 'w' })).complete('kept')
    expect(shown(await client.archive(id))).toMatchObject({ status: 'archived', archivedFrom: 'completed' })
    expect((await client.list()).tasks).toEqual([])
    expect((await client.list({ status: 'archived' })).tasks).toHaveLength(1)
    expect(shown(await client.unarchive(id))).toMatchObject({ status: 'completed', archivedFrom: null, output: 'kept' })
    expect(movesOf(await client.get(id)).slice(-2)).toEqual(['archive → archived', 'unarchive → completed'])
  })
})

describe('history', () => {
  it('[V01][V02] has one entry per move, numbered by revision, with who and under which op', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {}, { ttl: '1h' })
    await clock.advance(1_000)
    const first = await client.claim(id, { workerId: 'worker-1' })
    await first.renew()
    await first.reschedule('60s')
    await clock.advance(60_000)
    const second = await client.claim(id, { workerId: 'worker-2' })
    await second.complete()
    const history = await client.history(id)
    expect(history.map(({ n, move, to, by }) => `${n} ${move} ${to} ${by}`)).toEqual([
      '1 submit pending test',
      '2 claim running worker-1',
      '3 reschedule pending worker-1',
      '4 claim running worker-2',
      '5 complete completed worker-2',
    ])
    expect(history[0]).toMatchObject({ expiresAt: history[0]!.at + 3_600_000 })
    expect(history[2]).toMatchObject({ delay: 60_000, count: 1, availableAt: history[2]!.at + 60_000 })
    expect(history.map(({ op }) => op).slice(1)).toEqual([first.token, first.token, second.token, second.token])
  })
})
