/** Calls that meet what another process did in the middle of them, or whose reply never came. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { HoldfastError } from '../../src/core/errors.ts'
import { complete } from '../../src/core/machine.ts'
import type { Entry, Mark } from '../../src/store/kv/access/key-value.ts'
import { KEYS, parseSweepEntry, SWEEP, TASKS } from '../../src/store/kv/records/names.ts'
import { idOf, want } from '../../src/testing/conformance/build.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { openKvInMemory } from './open.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'
import { fresh, NOW, withKey } from './scenes.ts'

const DAY = 86_400_000
const wall = { wall: () => NOW }
const lost = (): HoldfastError => new HoldfastError('STORE_UNAVAILABLE', 'planted')

afterEach(() => void vi.useRealTimers())

describe('a record that this process has cached and another has changed', () => {
  test('does not decide about a renewal: the lease that the other took is held', async () => {
    const map = new KeyValueMap()
    const [here, there] = [openKvInMemory(new MemoryKeyValue(map, wall)), openKvInMemory(new MemoryKeyValue(map, wall))]
    await here.insert([{ task: fresh(1) }], { now: NOW })
    const [leased] = (await there.claim(want({ now: NOW, limit: 1 }))).leased
    const { token } = leased!.lease!
    expect(await here.renew([{ id: idOf(1), token, leaseTtl: 9_000 }], NOW + 1_000)).toEqual(['held'])
    expect((await there.get([idOf(1)]))[0]!.lease!.expiresAt).toBe(NOW + 10_000)
  })

  test('does not decide about a change: one that was decided on the new record is written', async () => {
    const map = new KeyValueMap()
    const [here, there] = [openKvInMemory(new MemoryKeyValue(map, wall)), openKvInMemory(new MemoryKeyValue(map, wall))]
    await here.insert([{ task: fresh(1) }], { now: NOW })
    const [leased] = (await there.claim(want({ now: NOW, limit: 1 }))).leased
    const change = complete(leased!, { token: leased!.lease!.token }, { text: '1', encoding: 'json' }, NOW + 1)
    expect(await here.commit([change])).toEqual(['written'])
  })
})

/** The next write of a task waits, as behind an outage. */
class HeldUp extends MemoryKeyValue {
  until: Promise<void> | null = null

  override async update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    const { until } = this
    if (key.startsWith(TASKS) && until !== null) {
      this.until = null
      await until
    }
    return super.update(key, value, mark)
  }
}

test('a renewal that was held up and is decided again does not end the lease earlier than a later one did', async () => {
  const clock = new FakeClock()
  const kv = new HeldUp(new KeyValueMap(), { wall: () => clock.wall() })
  const store = openKvInMemory(kv, { capabilities: [], timers: clock })
  await store.insert([{ task: fresh(1) }], { now: null })
  await clock.advance(86_400_000)
  const [leased] = (await store.claim(want({ now: null, limit: 1 }))).leased
  const renewal = { id: idOf(1), token: leased!.lease!.token, leaseTtl: 5_000 }
  const outage = Promise.withResolvers<void>()
  kv.until = outage.promise
  const held = store.renew([renewal], null)
  await clock.advance(8_000)
  expect(await store.renew([renewal], null)).toEqual(['held'])
  outage.resolve()
  expect(await held).toEqual(['held'])
  expect((await store.get([idOf(1)]))[0]!.lease!.expiresAt - clock.wall()).toBeGreaterThan(4_900)
})

test('the key of a removed task is swept when its own time is over, and not looked at before', async () => {
  const map = new KeyValueMap()
  const store = openKvInMemory(new MemoryKeyValue(map, wall))
  await store.insert([withKey(1, 'k')], { now: NOW })
  const [leased] = (await store.claim(want({ now: NOW, limit: 1 }))).leased
  await store.commit([complete(leased!, { token: leased!.lease!.token }, { text: '1', encoding: 'json' }, NOW)])
  const [ended] = await store.get([idOf(1)])
  expect(await store.remove([{ id: idOf(1), revision: ended!.revision, endKey: false }])).toEqual(['removed'])
  const entries = [...map.entries.keys()].filter((key) => key.startsWith(SWEEP)).map(parseSweepEntry)
  const ofKey = entries.filter(({ of }) => of.startsWith(KEYS))
  expect(ofKey).toHaveLength(1)
  expect(ofKey[0]!.at).toBeGreaterThanOrEqual(NOW + DAY)
})

/** The first write under a prefix reaches the server, something happens there, and the reply is lost. */
class Interrupted extends MemoryKeyValue {
  under = TASKS
  meanwhile: () => Promise<void> = async () => {}
  #isOver = false

  override async create(key: string, value: string): Promise<Mark | null> {
    const written = await super.create(key, value)
    if (this.#isOver || !key.startsWith(this.under)) return written
    this.#isOver = true
    await this.meanwhile()
    throw lost()
  }
}

test('a submit whose task was run and removed before its reply came is done, and does not run again', async () => {
  const map = new KeyValueMap()
  const slow = new Interrupted(map, wall)
  const other = openKvInMemory(new MemoryKeyValue(map, wall))
  slow.meanwhile = async () => {
    const [leased] = (await other.claim(want({ now: NOW, limit: 1 }))).leased
    const done = complete(leased!, { token: leased!.lease!.token }, { text: '1', encoding: 'json' }, NOW)
    expect(await other.commit([done])).toEqual(['written'])
    expect(await other.remove([{ id: idOf(1), revision: leased!.revision + 1, endKey: false }])).toEqual(['removed'])
  }
  expect(await openKvInMemory(slow).insert([withKey(1, 'k')], { now: NOW })).toEqual([{ outcome: 'created' }])
  expect(await other.get([idOf(1)])).toEqual([null])
  expect((await other.claim(want({ now: NOW + 1_000, limit: 1 }))).leased).toEqual([])
})

test.each([
  { how: 'with its key', endKey: true },
  { how: 'without its key', endKey: false },
])('so is one whose task was run and removed $how before the reply for the key came', async ({ endKey }) => {
  const map = new KeyValueMap()
  const slow = new Interrupted(map, wall)
  const other = openKvInMemory(new MemoryKeyValue(map, wall))
  slow.under = KEYS
  slow.meanwhile = async () => {
    const found = await other.find('k')
    const [leased] = (await other.claim(want({ now: NOW, limit: 1 }))).leased
    expect(leased!.id).toBe(found!.task!.id)
    await other.commit([complete(leased!, { token: leased!.lease!.token }, { text: '1', encoding: 'json' }, NOW)])
    await other.remove([{ id: idOf(1), revision: leased!.revision + 1, endKey }])
  }
  expect(await openKvInMemory(slow).insert([withKey(1, 'k')], { now: NOW })).toEqual([{ outcome: 'created' }])
  expect(await other.get([idOf(1)])).toEqual([null])
  expect((await other.claim(want({ now: NOW + 1_000, limit: 1 }))).leased).toEqual([])
})

/** Dies before it writes the first task. */
class Dying extends MemoryKeyValue {
  readonly died = Promise.withResolvers<void>()

  override create(key: string, value: string): Promise<Mark | null> {
    if (!key.startsWith(TASKS)) return super.create(key, value)
    this.died.resolve()
    return new Promise(() => {})
  }
}

test('a submit that died half-way is not finished after its key has ended: the next one has the key', async () => {
  const map = new KeyValueMap()
  const dying = new Dying(map, wall)
  void openKvInMemory(dying).insert([withKey(1, 'k')], { now: NOW })
  await dying.died.promise
  const later = NOW + DAY
  const store = openKvInMemory(new MemoryKeyValue(map, { wall: () => later }))
  const next = withKey(2, 'k')
  const key = { ...next.key!, expiresAt: later + DAY }
  expect(await store.insert([{ ...next, key }], { now: later })).toEqual([{ outcome: 'created' }])
  expect(await store.get([idOf(1)])).toEqual([null])
  expect((await store.find('k'))?.task?.id).toBe(idOf(2))
})

/** Writes the lease, and is silent from then on until it is back. */
class Silent extends MemoryKeyValue {
  isSilent = false
  isArmed = false

  override async get(key: string): Promise<Entry | null> {
    if (this.isSilent) throw lost()
    return super.get(key)
  }

  override async update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    if (this.isSilent) throw lost()
    const written = await super.update(key, value, mark)
    if (!this.isArmed || !key.startsWith(TASKS)) return written
    this.isArmed = false
    this.isSilent = true
    throw lost()
  }
}

test('a lease that was written and never answered goes back at once when contact is back, and costs no retry', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const kv = new Silent(new KeyValueMap(), wall)
  const store = openKvInMemory(kv)
  await store.insert([{ task: fresh(1) }], { now: NOW })
  kv.isArmed = true
  const claimed = store.claim(want({ now: NOW, limit: 1 }))
  const refused = expect(
    claimed.catch((error: unknown) => {
      kv.isSilent = false
      throw error
    }),
  ).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await vi.advanceTimersByTimeAsync(30_000)
  await refused
  const [task] = await store.get([idOf(1)])
  expect(task).toMatchObject({ status: 'pending', lease: null, retryCount: 0, attempts: 1 })
  expect(task!.history.at(-1)).toMatchObject({ move: 'release' })
})
