/**
 * The problems that reading the public bucket-only queue brought to light, U1 to U16: each passes here, or cannot occur. U14 is
 * in test/s3/clock.test.ts, U16 in requests.test.ts. U5 (moving tasks between shards) cannot occur: the shard is the end
 * of the id, and stands nowhere else. U13 (versions of everything) neither: no part of the history is kept as versions.
 */
import { describe, expect, test } from 'vitest'
import { RescheduleError } from '../../src/index.ts'
import { parseHint } from '../../src/store/kv/records/hint-names.ts'
import { DOCUMENTS, KEYS, READY, TASKS, taskKey } from '../../src/store/kv/records/names.ts'
import { idOf, task, want } from '../../src/testing/conformance/build.ts'
import { openKvInMemory } from './open.ts'
import { MemoryKeyValue } from './places/memory-key-value.ts'
import { fresh, NOW, withKey } from './scenes.ts'
import { begin } from './setup.ts'

const HOUR = 3_600_000

/** Waits before it writes the first key with this prefix. */
class Gated extends MemoryKeyValue {
  readonly reached = Promise.withResolvers<void>()
  readonly gate = Promise.withResolvers<void>()
  prefix = TASKS

  override async create(key: string, value: string): Promise<string | null> {
    if (key.startsWith(this.prefix)) {
      this.reached.resolve()
      await this.gate.promise
    }
    return super.create(key, value)
  }
}

describe('one task for one key', () => {
  test('[U1] also when a second submitter comes between the key and the task of the first', async () => {
    const { map } = begin()
    const slow = new Gated(map, { wall: () => NOW })
    const first = openKvInMemory(slow)
    const inserting = first.insert([withKey(1, 'k')], { now: NOW })
    await slow.reached.promise
    const second = openKvInMemory(new MemoryKeyValue(map, { wall: () => NOW }))
    const [found] = await second.insert([withKey(2, 'k')], { now: NOW })
    expect(found).toMatchObject({ outcome: 'existing', task: { id: idOf(1) } })
    slow.gate.resolve()
    expect(await inserting).toEqual([{ outcome: 'created' }])
    expect((await second.count({}, { cap: 10, now: NOW })).count).toBe(1)
  })

  test('[U1] also when the first died there: the second finishes its insert, with the same id', async () => {
    const { map } = begin()
    const slow = new Gated(map, { wall: () => NOW })
    slow.prefix = READY
    void openKvInMemory(slow).insert([withKey(1, 'k')], { now: NOW })
    await slow.reached.promise
    const second = openKvInMemory(new MemoryKeyValue(map, { wall: () => NOW }))
    expect((await second.find('k'))?.task?.id).toBe(idOf(1))
    expect((await second.claim(want({ now: NOW }))).leased.map(({ id }) => id)).toEqual([idOf(1)])
  })
})

describe('what is left over', () => {
  test('[U2] is found on every page, also when each claim is made by a process that remembers nothing', async () => {
    const { map } = begin()
    const kv = () => new MemoryKeyValue(map, { wall: () => NOW })
    for (let n = 1; n <= 2_300; n++) {
      const hint = `${READY}default/000000000001/${idOf(n)}~email~0~60000~~1`
      expect(parseHint(hint)).not.toBeNull()
      await kv().create(hint, '')
    }
    await openKvInMemory(kv()).insert([{ task: fresh(9_000) }], { now: NOW })
    const hints = () => [...map.entries.keys()].filter((key) => key.startsWith(READY)).length
    let looks = 0
    while (hints() > 1 && looks++ < 12) {
      const store = openKvInMemory(kv())
      // With limit 0, so that the one real task is not leased.
      for (let n = 0; n < 2; n++)
        await store.claim(want({ now: NOW + 2 * HOUR, limit: 500, types: ['email'], leaseTtl: 5 }))
      await store.close()
    }
    expect(hints()).toBe(1)
  })

  test('[J11] the hint of a task is gone when it has expired, and of one that has ended', async () => {
    const { clock, map, open } = begin()
    const { client } = await open()
    const worker = client.worker().handle('b', async () => null)
    worker.start()
    const { id } = await client.submit('a', 0, { ttl: '1s' })
    await client.submit('b', 0)
    expect([...map.entries.keys()].filter((key) => key.startsWith(READY))).toHaveLength(2)
    for (let second = 0; second < 5; second++) await clock.advance(1_000)
    expect((await client.get(id))?.status).toBe('expired')
    expect([...map.entries.keys()].filter((key) => key.startsWith(READY))).toEqual([])
    await worker.stop()
  })
})

describe('cancelling', () => {
  test('[U3] a running task ends as cancelled, whatever renewed its lease meanwhile', async () => {
    const { clock, open } = begin()
    const { client } = await open()
    const worker = client.worker().handle('a', (_, { signal }) => {
      return new Promise((_done, failed) => signal.addEventListener('abort', () => failed(signal.reason)))
    })
    worker.start()
    const { id } = await client.submit('a', 0)
    for (let second = 0; second < 25; second++) await clock.advance(1_000)
    await client.cancel(id)
    for (let second = 0; second < 15; second++) await clock.advance(1_000)
    expect(await client.get(id)).toMatchObject({ status: 'cancelled', attempts: 1, retryCount: 0 })
    await worker.stop()
  })

  test('[U3] a sleep is written at once after a request to stop and heartbeats have changed the mark', async () => {
    const { clock, open } = begin()
    const [here, there] = [await open(), await open()]
    const sleeps = Promise.withResolvers<void>()
    const worker = here.client.worker().handle('a', async (_, ctx) => {
      await sleeps.promise
      return ctx.reschedule('60s')
    })
    worker.start()
    const { id } = await here.client.submit('a', 0)
    for (let second = 0; second < 25; second++) await clock.advance(1_000)
    await there.store.renew([{ id, token: (await there.client.get(id))!.lease!.token, leaseTtl: 30_000 }], null)
    sleeps.resolve()
    await clock.advance(100)
    expect(await there.client.get(id)).toMatchObject({ status: 'pending', rescheduleCount: 1, retryCount: 0 })
    await worker.stop()
  })

  test('[U11] a cancelled task can be cancelled again', async () => {
    const { open } = begin()
    const { client } = await open()
    const { id } = await client.submit('a', 0)
    await client.cancel(id)
    expect((await client.cancel(id)).status).toBe('cancelled')
  })
})

describe('discovery', () => {
  test('[U4] tasks of every shard are listed, run, and found again after their worker died', async () => {
    const { clock, open } = begin()
    const [dead, alive] = [await open(), await open()]
    const ends = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))
    await dead.store.insert(
      ends.map((end, n) => {
        const now = clock.wall()
        const record = task(n, { createdAt: now, updatedAt: now, availableAt: now })
        return { task: { ...record, id: `${record.id.slice(0, -2)}${end}` } }
      }),
      { now: null },
    )
    expect((await alive.client.list({ limit: 1_000 })).tasks).toHaveLength(256)
    const { leased } = await dead.store.claim(want({ limit: 256, now: null, leaseTtl: 5_000 }))
    expect(leased).toHaveLength(256)
    const worker = alive.client.worker({ concurrency: 64 }).handle('email', async () => null)
    worker.start()
    for (let second = 0; second < 60; second++) await clock.advance(1_000)
    expect((await alive.client.count({ status: 'completed' })).count).toBe(256)
    await worker.stop()
  })

  test('[U8] old tasks of types that no worker handles do not hold up new work', async () => {
    const { clock, open } = begin()
    const [producer, other] = [await open(), await open()]
    await producer.client.submitMany(Array.from({ length: 2_500 }, () => ({ type: 'unhandled', input: null })))
    for (let minute = 0; minute < 10; minute++) await clock.advance(60_000)
    const worker = other.client.worker().handle('a', async () => null)
    worker.start()
    for (let second = 0; second < 10; second++) await clock.advance(1_000)
    const { id } = await producer.client.submit('a', 0)
    other.kv.take()
    for (let second = 0; second < 3; second++) await clock.advance(1_000)
    expect((await producer.client.get(id))?.status).toBe('completed')
    expect(other.kv.log.filter((line) => line.startsWith('LIST ready/')).length).toBeLessThanOrEqual(8)
    await worker.stop()
  })

  test('[U8] what one worker has passed by is there for another, and for one that had no room', async () => {
    const { clock, open } = begin()
    const { client, store } = await open()
    await client.submitMany(Array.from({ length: 1_500 }, () => ({ type: 'b', input: null })))
    for (let minute = 0; minute < 10; minute++) await clock.advance(60_000)
    expect((await store.claim(want({ types: ['a'], now: null }))).leased).toEqual([])
    expect((await store.claim(want({ types: ['b'], limit: 0, now: null }))).leased).toEqual([])
    expect((await store.claim(want({ types: ['b'], limit: 5, now: null }))).leased).toHaveLength(5)
  })

  test('[U12] a filter is applied before the limit, and a status that is none is an error', async () => {
    const { open } = begin()
    const { client } = await open()
    const { id } = await client.submit('a', 0)
    await client.cancel(id)
    for (let n = 0; n < 5; n++) await client.submit('a', n)
    expect((await client.list({ status: 'cancelled', limit: 1 })).tasks.map((one) => one.id)).toEqual([id])
    await expect(client.list({ status: 'nonsense' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('running', () => {
  test('[U6] [U7] a handler may run longer than its lease, beside others, and no longer than its timeout', async () => {
    const { clock, open } = begin()
    const { client } = await open()
    const worker = client.worker({ concurrency: 3 }).handle('a', (ms, { signal }) => {
      return new Promise((done, failed) => {
        clock.after(ms as number, () => done(null))
        signal.addEventListener('abort', () => failed(signal.reason))
      })
    })
    worker.start()
    const [long, short, tooLong] = [
      await client.submit('a', 100_000),
      await client.submit('a', 1_000),
      await client.submit('a', 100_000, { timeout: '50s', maxRetries: 0 }),
    ]
    for (let second = 0; second < 45; second++) await clock.advance(1_000)
    expect((await client.get(short.id))?.status).toBe('completed')
    expect(await client.workers()).toHaveLength(1)
    for (let second = 0; second < 60; second++) await clock.advance(1_000)
    expect(await client.get(long.id)).toMatchObject({ status: 'completed', attempts: 1 })
    expect(await client.get(tooLong.id)).toMatchObject({ status: 'failed', lastError: { name: 'TimeoutError' } })
    await worker.stop()
  })

  test('[U15] what an error is called counts, not what its message says', async () => {
    const { clock, open } = begin()
    const { client } = await open()
    const worker = client.worker().handle('a', async (says) => {
      if (says === 'really') throw new RescheduleError('60s')
      throw new Error(says as string)
    })
    worker.start()
    const message = await client.submit('a', 'RescheduleError: PermanentError: retry after 5', { maxRetries: 0 })
    const real = await client.submit('a', 'really')
    await clock.advance(1_000)
    expect(await client.get(message.id)).toMatchObject({ status: 'failed', rescheduleCount: 0 })
    expect(await client.get(real.id)).toMatchObject({ status: 'pending', rescheduleCount: 1 })
    await worker.stop()
  })

  test('[U9] a replay begins with all counters at zero and without the old expiry', async () => {
    const { clock, open } = begin()
    const { client } = await open()
    const worker = client.worker().handle('a', async (_, ctx) => {
      if (ctx.fence < 3) return ctx.reschedule('1s')
      throw new Error('no')
    })
    worker.start()
    const { id } = await client.submit('a', 0, { maxRetries: 0, maxReschedules: 2, ttl: '1h' })
    for (let second = 0; second < 10; second++) await clock.advance(1_000)
    expect(await client.get(id)).toMatchObject({ status: 'failed', rescheduleCount: 2 })
    await worker.stop()
    await client.deadLetters.replay(id)
    expect(await client.get(id)).toMatchObject({
      status: 'pending',
      retryCount: 0,
      rescheduleCount: 0,
      expiresAt: null,
      replayCount: 1,
    })
  })
})

describe('schedules', () => {
  test('[U10] a new schedule waits for its first slot, and one that is made again swallows nothing', async () => {
    const { clock, open } = begin()
    const { client } = await open()
    let runs = 0
    const worker = client.worker().handle('a', async () => void runs++)
    worker.start()
    const make = () => client.schedules.create({ id: 'hourly', type: 'a', input: null, every: '1h' })
    await make()
    for (let minute = 0; minute < 59; minute++) await clock.advance(60_000)
    expect(runs).toBe(0)
    for (let minute = 0; minute < 2; minute++) await clock.advance(60_000)
    expect(runs).toBe(1)
    await client.schedules.delete('hourly')
    await make()
    for (let minute = 0; minute < 61; minute++) await clock.advance(60_000)
    expect(runs).toBe(2)
    await worker.stop()
  })
})

test('[T01] [U5] everything is where it is said to be, and a key says where by itself', async () => {
  const { map, open } = begin()
  const { client } = await open()
  const { id } = await client.submit('send:mail', 0, { queue: 'eu/mail', priority: 5, idempotencyKey: 'k' })
  const keys = [...map.entries.keys()].sort()
  expect(taskKey(id)).toBe(`tasks/${id.slice(-2)}/${id}.json`)
  expect(keys.filter((key) => key.startsWith(TASKS))).toEqual([taskKey(id)])
  expect(keys.filter((key) => key.startsWith(KEYS))).toHaveLength(1)
  expect(keys.filter((key) => key.startsWith(DOCUMENTS))).toEqual([`${DOCUMENTS}queue=2feu=2fmail`])
  const [hint] = keys.filter((key) => key.startsWith(READY))
  expect(hint).toMatch(new RegExp(`^ready/eu=2fmail/\\d{12}/${id}~send=3amail~5~`))
  expect(map.entries.get(taskKey(id))!.value).not.toContain('"shard"')
})
