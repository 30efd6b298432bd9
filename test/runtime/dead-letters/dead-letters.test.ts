/** The dead letters: looking at them, bringing them back, removing them. */
import { describe, expect, it } from 'vitest'
import { type Client, PermanentError, type SubmitOptions } from '../../../src/index.ts'
import { type Bench, begin, movesOf, refuses, shown } from '../setup.ts'

const die = async (client: Client, error: Error = new Error('boom'), options: SubmitOptions = {}): Promise<string> => {
  const { id } = await client.submit('work', { n: 1 }, { maxRetries: 0, ...options })
  await (await client.claim(id, { workerId: 'w' })).fail(error)
  return id
}

const dieMany = async (client: Client, count: number): Promise<string[]> => {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push(await die(client, new Error(`boom ${i}`)))
  return ids
}

const statusesOf = async ({ client }: Pick<Bench, 'client'>, ids: readonly string[]): Promise<string[]> =>
  Promise.all(ids.map(async (id) => (await client.get(id)).status))

describe('looking at dead letters', () => {
  it('[L04] a task that has used its retries is a dead letter where it is, and holds nobody up', async () => {
    const { client, clock } = await begin()
    let done = 0
    client
      .worker({ concurrency: 1 })
      .handle('poison', () => Promise.reject(new Error('always')))
      .handle('work', () => void done++)
      .start()
    const { id } = await client.submit('poison', {}, { maxRetries: 2 })
    await client.submit('work', {})
    await clock.advance(120_000)
    const { tasks } = await client.deadLetters.list()
    expect(tasks.map((task) => [task.id, task.status, task.attempts])).toEqual([[id, 'failed', 3]])
    expect((await client.list({ status: 'dlq' })).tasks.map((task) => task.id)).toEqual([id])
    expect(done).toBe(1)
  })

  it('expired, cancelled and archived tasks are none', async () => {
    const { client } = await begin()
    const [one, two] = [await client.submit('work', 1), await client.submit('work', 2)]
    await client.cancel(one.id)
    await client.markExpired(two.id)
    await client.archive(await die(client))
    expect((await client.deadLetters.list()).tasks).toEqual([])
    expect(await client.deadLetters.groups()).toEqual({ groups: [], scanned: 0, capped: false })
  })

  it('groups are told by what the errors have in common, the largest first, with a sample', async () => {
    const { client, clock } = await begin()
    const first = clock.wall()
    for (const n of [1, 2, 3]) {
      await die(client, new Error(`user ${n} has no address`))
      await clock.advance(1_000)
    }
    const last = await die(client, new Error('user 44 has no address'), { queue: 'mail' })
    await die(client, new TypeError('user 5 has no address'))
    const { groups, scanned, capped } = await client.deadLetters.groups()
    expect([scanned, capped]).toEqual([5, false])
    expect(groups).toMatchObject([
      {
        name: 'Error',
        pattern: 'user # has no address',
        count: 4,
        firstSeenAt: first,
        lastSeenAt: first + 3_000,
        types: ['work'],
        sample: { id: last },
      },
      { name: 'TypeError', count: 1 },
    ])
    expect((await client.deadLetters.groups({ queue: 'mail' })).groups).toMatchObject([{ count: 1 }])
  })

  it('one group can be listed, page by page', async () => {
    const { client } = await begin()
    const reading = (name: string): Promise<string> => die(client, new TypeError(`no object (reading '${name}')`))
    const totals = [await reading('total'), await reading('email'), await reading('total'), await reading('total')]
    totals.splice(1, 1)
    const { groups } = await client.deadLetters.groups()
    expect(groups.map(({ count }) => count)).toEqual([3, 1])
    const group = groups[0]!.fingerprint
    const first = await client.deadLetters.list({ group, limit: 2, order: 'oldest' })
    expect(first.tasks.map(({ id }) => id)).toEqual(totals.slice(0, 2))
    const rest = await client.deadLetters.list({ group, limit: 2, order: 'oldest', cursor: first.cursor! })
    expect([rest.tasks.map(({ id }) => id), rest.cursor]).toEqual([totals.slice(2), null])
  })

  it('a group that does not exist is an error for replay and purge, also for a plan of them', async () => {
    const { client } = await begin()
    await die(client)
    for (const dryRun of [true, false]) {
      await refuses(
        'GROUP_NOT_FOUND',
        /no dead letter belongs to group nosuch/,
      )(client.deadLetters.replay({ group: 'nosuch' }, { dryRun }))
      await refuses('GROUP_NOT_FOUND')(client.deadLetters.purge({ group: 'nosuch' }, { dryRun }))
    }
  })

  it('a look that ends at its cap says so, and groups count the newest', async () => {
    const { client } = await begin()
    const ids = await dieMany(client, 3)
    expect((await client.deadLetters.groups({}, { cap: 1 })).groups[0]!.sample.id).toBe(ids.at(-1))
    expect(await client.deadLetters.groups({}, { cap: 2 })).toMatchObject({ scanned: 2, capped: true })
    expect(await client.deadLetters.groups({}, { cap: 3 })).toMatchObject({ scanned: 3, capped: false })
    expect(await client.deadLetters.replay({}, { cap: 2, dryRun: true })).toMatchObject({ matched: 2, capped: true })
  })
})

describe('replay', () => {
  it('[L02][L03] gives a dead letter a new budget, and it runs again', async () => {
    const { client, clock } = await begin()
    const id = await die(client, new Error('boom'), { ttl: '1h' })
    const { results, matched } = await client.deadLetters.replay(id)
    expect(matched).toBe(1)
    expect(results).toMatchObject([{ id, task: { id, status: 'pending' } }])
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({ retryCount: 0, replayCount: 1, expiresAt: null, completedAt: null })
    expect(movesOf(task).at(-1)).toBe('replay → pending')
    client
      .worker()
      .handle('work', () => 'done')
      .start()
    await clock.settle()
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: 'done', attempts: 2 })
  })

  it('gives each id its own result', async () => {
    const { client } = await begin()
    const id = await die(client)
    const waiting = await client.submit('work', 1)
    const unknown = '01900000-0000-7000-8000-000000000000'
    const { results } = await client.deadLetters.replay([waiting.id, id, unknown, 'nonsense', id])
    expect(new Map(results.map((result) => [result.id, 'error' in result ? result.error.code : 'replayed']))).toEqual(
      new Map([
        [id, 'replayed'],
        [waiting.id, 'CANNOT_REPLAY'],
        [unknown, 'TASK_NOT_FOUND'],
        ['nonsense', 'INVALID_TASK'],
      ]),
    )
    expect(results).toHaveLength(4)
  })

  it('of a group leaves the others alone; of a query takes what matches', async () => {
    const { client } = await begin()
    const mine = await dieMany(client, 3)
    const other = await die(client, new TypeError('other'), { queue: 'mail' })
    const { groups } = await client.deadLetters.groups()
    const { results } = await client.deadLetters.replay({ group: groups[0]!.fingerprint })
    expect(results.map(({ id }) => id).sort()).toEqual(mine.sort())
    expect((await client.get(other)).status).toBe('failed')
    expect((await client.deadLetters.replay({ queue: 'mail' })).results).toMatchObject([{ id: other }])
  })

  it('with dryRun only tells what it would be about', async () => {
    const { client } = await begin()
    const ids = await dieMany(client, 12)
    const report = await client.deadLetters.replay({}, { dryRun: true })
    expect(report).toMatchObject({ matched: 12, results: [], stopped: null, canary: null })
    expect(report.sample.map(({ id }) => id)).toEqual(ids.slice(0, 10))
    expect(await statusesOf({ client }, ids)).toEqual(ids.map(() => 'failed'))
  })

  it('takes a new expiry, and refuses two', async () => {
    const { client, clock } = await begin()
    const id = await die(client)
    await refuses('INVALID_OPTION')(client.deadLetters.replay(id, { ttl: '1h', expiresAt: clock.wall() }))
    await client.deadLetters.replay(id, { ttl: '1h' })
    expect((await client.get(id)).expiresAt).toBe(clock.wall() + 3_600_000)
    await refuses('INVALID_OPTION')(client.deadLetters.replay(id, { rate: 0 }))
    await refuses('INVALID_OPTION')(client.deadLetters.replay(id, { canary: 0 }))
  })

  it('keeps to its rate by the clock', async () => {
    const { client, clock, passing } = await begin()
    await dieMany(client, 50)
    const done: [at: number, done: number][] = []
    const started = clock.mono()
    await passing(
      client.deadLetters.replay({}, { rate: 20, onProgress: (n) => done.push([clock.mono() - started, n]) }),
      10,
    )
    expect(done.at(-1)![1]).toBe(50)
    for (const [at, n] of done) expect(n, `${n} after ${at} ms`).toBeLessThanOrEqual((at / 1_000) * 20 + 2)
    expect(done.at(-1)![0]).toBeLessThan(2_600)
  })

  it('stops when it is told to, and asking again goes on where it ended', async () => {
    const { client } = await begin()
    const ids = await dieMany(client, 1_100)
    const stop = new AbortController()
    const first = await client.deadLetters.replay({}, { signal: stop.signal, onProgress: () => stop.abort() })
    expect(first).toMatchObject({ stopped: 'aborted', matched: 500 })
    const second = await client.deadLetters.replay({})
    expect(second).toMatchObject({ stopped: null, matched: 600 })
    expect(new Set([...first.results, ...second.results].map(({ id }) => id)).size).toBe(ids.length)
    for (const { replayCount } of (await client.list({ limit: 1_000 })).tasks) expect(replayCount).toBe(1)
  })

  it('does not meet again what dies again while it walks', async () => {
    const { client, clock, passing } = await begin()
    await dieMany(client, 30)
    client
      .worker()
      .handle('work', () => Promise.reject(new PermanentError('again')))
      .start()
    await passing(client.deadLetters.replay({}, { rate: 10 }))
    await clock.settle()
    for (const task of (await client.list()).tasks)
      expect([task.status, task.replayCount, task.attempts]).toEqual(['failed', 1, 2])
  })

  it('leaves alone what ran again after it was chosen', async () => {
    const { client, store, another } = await begin()
    const id = await die(client)
    const meddler = await another()
    let isFirst = true
    const slow = await another({
      through: (inner) =>
        new Proxy(inner, {
          get: (target, name) =>
            name === 'commit' && isFirst
              ? async (...args: Parameters<typeof store.commit>) => {
                  isFirst = false
                  await meddler.deadLetters.replay(id)
                  await (await meddler.claim(id, { workerId: 'w' })).fail(new PermanentError('another cause'))
                  return target.commit(...args)
                }
              : Reflect.get(target, name),
        }),
    })
    expect((await slow.deadLetters.replay({})).results).toMatchObject([{ id, error: { code: 'CANNOT_REPLAY' } }])
    expect(shown(await client.get(id))).toMatchObject({ status: 'failed', replayCount: 1 })
  })
})

describe('a canary', () => {
  it('that fails again stops the replay, and the report says which', async () => {
    const { client, passing } = await begin()
    const ids = await dieMany(client, 20)
    client
      .worker()
      .handle('work', () => Promise.reject(new PermanentError('still broken')))
      .start()
    const report = await passing(client.deadLetters.replay({}, { canary: 5 }))
    expect(report).toMatchObject({ stopped: 'canary', matched: 5, canary: { replayed: 5, failed: ids.slice(0, 5) } })
    expect(report.results).toHaveLength(5)
    expect((await client.count({ status: 'failed' })).count).toBe(20)
    for (const id of ids.slice(5)) expect((await client.get(id)).replayCount).toBe(0)
  })

  it('that completes lets the others follow', async () => {
    const { client, passing, clock } = await begin()
    const ids = await dieMany(client, 20)
    client
      .worker()
      .handle('work', () => 'mended')
      .start()
    const report = await passing(client.deadLetters.replay(ids, { canary: 5 }))
    expect(report).toMatchObject({ stopped: null, matched: 20, canary: { replayed: 5, failed: [] } })
    await clock.settle()
    expect(await statusesOf({ client }, ids)).toEqual(ids.map(() => 'completed'))
  })

  it('that nobody runs stops it when the time is over', async () => {
    const { client, passing } = await begin()
    await dieMany(client, 3)
    const report = await passing(client.deadLetters.replay({}, { canary: 1, canaryTimeout: '1m' }), 1_000)
    expect(report).toMatchObject({ stopped: 'canary', matched: 1 })
  })
})

describe('purge', () => {
  it('removes dead letters with their keys, and nothing else', async () => {
    const { client } = await begin()
    const id = await die(client, new Error('boom'), { idempotencyKey: 'k' })
    const other = await die(client, new TypeError('kept'))
    const waiting = await client.submit('work', 1)
    const group = (await client.deadLetters.groups({})).groups.find(({ name }) => name === 'Error')!.fingerprint
    expect(await client.deadLetters.purge({ group }, { dryRun: true })).toMatchObject({ matched: 1, results: [] })
    expect(await client.deadLetters.purge({ group })).toMatchObject({ matched: 1, results: [{ id }] })
    await refuses('TASK_NOT_FOUND')(client.get(id))
    expect((await client.submit('work', { n: 1 }, { idempotencyKey: 'k' })).deduplicated).toBe(false)
    const { results } = await client.deadLetters.purge([waiting.id, other, id])
    expect(new Map(results.map((result) => [result.id, 'error' in result ? result.error.code : 'gone']))).toEqual(
      new Map([
        [waiting.id, 'TASK_NOT_TERMINAL'],
        [other, 'gone'],
        [id, 'TASK_NOT_FOUND'],
      ]),
    )
  })
})
