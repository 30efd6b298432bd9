/** Limits with several processes on one key-value store: places, dead processes, and long lines of one group. */
import { expect, test } from 'vitest'
import type { ClaimLimits } from '../../src/core/flow/group-turns.ts'
import * as machine from '../../src/core/machine.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import type { ClaimResult, Store } from '../../src/store/store.ts'
import { idOf, task, want } from '../../src/testing/conformance/build.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { Random } from '../../src/testing/random.ts'
import { CountingKeyValue } from './places/counting-key-value.ts'
import { Crashed, FaultyKeyValue } from './places/faulty-key-value.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'

const LEASE = 30_000

const limitsOf = (
  perGroup: number | null,
  concurrency: number | null = null,
  after: string | null = null,
): ClaimLimits => ({
  concurrency,
  notAfter: null,
  turns: { perGroup, after, mostEach: 1_000, without: [], only: null, passed: [] },
})

/** Several processes with one clock. `wrap` may disturb the requests of one. */
const begin = () => {
  const clock = new FakeClock()
  const map = new KeyValueMap()
  const open = (wrap = (kv: MemoryKeyValue): MemoryKeyValue | FaultyKeyValue => kv) => {
    const kv = new CountingKeyValue(wrap(new MemoryKeyValue(map, { wall: () => clock.wall() })))
    const store = new KvStore(kv, { capabilities: [], leaseTtl: LEASE, timers: clock })
    return { kv, store }
  }
  const fresh = (n: number, fields: Parameters<typeof task>[1] = {}) =>
    task(n, { createdAt: clock.wall(), updatedAt: clock.wall(), availableAt: clock.wall(), ...fields })
  return { clock, map, open, fresh }
}

const look = (store: Store, limits: ClaimLimits, fields: Parameters<typeof want>[0] = {}): Promise<ClaimResult> =>
  store.claim(want({ limits, now: null, leaseTtl: LEASE, ...fields }))

interface Written {
  readonly task?: { readonly id: string; readonly status: string; readonly group: string | null }
}

const running = ({ entries }: KeyValueMap) =>
  [...entries].flatMap(([key, { value }]) => {
    const { task: one } = key.startsWith('tasks/') ? (JSON.parse(value) as Written) : {}
    return one?.status === 'running' ? [one] : []
  })

/** A process whose claims stop at the write of the lease until `resume` is called. */
const stopped = () => {
  const [reached, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const wrap = (kv: MemoryKeyValue): MemoryKeyValue => {
    const update = kv.update.bind(kv)
    kv.update = async (key, value, mark) => {
      if (key.startsWith('tasks/')) {
        reached.resolve()
        await resumed.promise
      }
      return update(key, value, mark)
    }
    return kv
  }
  return { wrap, reached: reached.promise, resume: resumed.resolve }
}

/** The planted bug: gives up a place without rewriting its task. */
const withoutRewrite = (kv: MemoryKeyValue): MemoryKeyValue => {
  const update = kv.update.bind(kv)
  kv.update = async (key, value, mark) =>
    key.startsWith('tasks/') && (JSON.parse(value) as Written).task?.status === 'pending'
      ? 'planted'
      : update(key, value, mark)
  return kv
}

/** A claimer stops between its place and its claim, and goes on after another has taken the place. */
const overtake = async (wrap?: typeof withoutRewrite) => {
  const { clock, map, open, fresh } = begin()
  const { wrap: stop, reached, resume } = stopped()
  const [slow, other] = [open(stop).store, open(wrap).store]
  await other.insert([{ task: fresh(1, { group: 'a', type: 'sms' }) }, { task: fresh(2, { group: 'a' }) }], {
    now: null,
  })
  const late = look(slow, limitsOf(1), { types: ['sms'] })
  await reached
  const full = await look(other, limitsOf(1), { types: ['email'] })
  await clock.advance(1_500)
  const taken = await look(other, limitsOf(1), { types: ['email'] })
  resume()
  const { leased } = await late
  await slow.close()
  await other.close()
  return { full, taken, leased, running: running(map).map(({ id }) => id) }
}

test('a claimer that was stopped between its place and its claim leases nothing once its place was given to another', async () => {
  const { full, taken, leased, running: run } = await overtake()
  expect([full.leased, full.full, full.isHeldBack]).toEqual([[], ['a'], true])
  expect(taken.leased.map(({ id }) => id)).toEqual([idOf(2)])
  expect(leased).toEqual([])
  expect(run).toEqual([idOf(2)])
})

test('a store that does not rewrite the task of a place that it gives up exceeds the limit', async () => {
  expect((await overtake(withoutRewrite)).running).toHaveLength(2)
})

const TASKS = 12

test('whichever request a process dies at, its places come back, and no limit is exceeded', async () => {
  for (let at = 1, hasFailed = true; hasFailed; at++) {
    const { clock, map, open, fresh } = begin()
    const { store } = open()
    await store.insert(
      Array.from({ length: TASKS }, (_, n) => ({ task: fresh(n + 1, { group: `g${n % 3}` }) })),
      { now: null },
    )
    let faulty: FaultyKeyValue | undefined
    const dying = open((kv) => {
      faulty = new FaultyKeyValue(kv, 'crash', at)
      return faulty
    }).store
    const work = async (by: Store, limits: ClaimLimits): Promise<number> => {
      const { leased, due } = await look(by, limits, { op: `${by === dying ? 'dying' : 'other'}-${clock.wall()}` })
      const now = clock.wall()
      await by.commit([
        ...leased.map((held) =>
          machine.complete(held, { token: held.lease!.token }, { text: '1', encoding: 'json' }, now),
        ),
        ...due.map((found) => machine.loseLease(found, 'other', now, 0)),
      ])
      return leased.length
    }
    await (async () => {
      await work(dying, limitsOf(1, 2))
      await dying.close()
    })().catch((error: unknown) => {
      if (!(error instanceof Crashed)) throw error
    })
    hasFailed = faulty!.hasFailed
    let left = TASKS
    for (let looks = 0; looks < 60 && left > 0; looks++) {
      await work(store, limitsOf(1, 2))
      expect(running(map).length).toBeLessThanOrEqual(2)
      left = (await store.count({ views: [{ status: 'pending' }, { status: 'running' }] }, { cap: 100, now: null }))
        .count
      await clock.advance(2_000)
    }
    expect(left, `after a crash at request ${at}`).toBe(0)
    await store.close()
  }
})

test('processes that claim, end and stop at random never exceed the limits of queue and group', async () => {
  const { clock, map, open, fresh } = begin()
  const random = new Random(11)
  const total = 120
  let most = { queue: 0, group: 0 }
  /** Every request takes a while, and some take longer than a place is trusted. */
  const slowly = (kv: MemoryKeyValue): MemoryKeyValue => {
    const update = kv.update.bind(kv)
    kv.update = async (key, value, mark) => {
      if (random.chance(0.05)) await new Promise<void>((go) => clock.after(random.below(4_000), go))
      else await new Promise((go) => setImmediate(go))
      const written = await update(key, value, mark)
      const run = running(map)
      const ofGroups = [...Map.groupBy(run, ({ group }) => group).values()].map(({ length }) => length)
      most = { queue: Math.max(most.queue, run.length), group: Math.max(most.group, ...ofGroups, 0) }
      return written
    }
    return kv
  }
  const { store: first } = open()
  await first.insert(
    Array.from({ length: total }, (_, n) => ({ task: fresh(n + 1, { group: `g${n % 6}` }) })),
    { now: null },
  )
  let ended = 0
  const stores = Array.from({ length: 4 }, () => open(slowly).store)
  const work = async (store: Store, name: string): Promise<void> => {
    for (let n = 0; ended < total; n++) {
      const { leased, due } = await look(store, limitsOf(2, 5), { limit: 3, op: `${name}-${n}`, workerId: name })
      await new Promise<void>((go) => clock.after(50 + random.below(500), go))
      const now = clock.wall()
      const ends = leased.map((held) =>
        machine.complete(held, { token: held.lease!.token }, { text: '1', encoding: 'json' }, now),
      )
      for (const outcome of await store.commit(ends)) if (outcome === 'written') ended++
      await store.commit(due.map((found) => machine.loseLease(found, name, now, 0)))
    }
  }
  let isOver = false
  const all = Promise.all(stores.map((store, n) => work(store, `worker-${n}`))).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await clock.advance(20)
    await new Promise((go) => setImmediate(go))
  }
  await all
  expect(ended).toBe(total)
  expect(most).toEqual({ queue: 5, group: 2 })
})

test('behind 5,000 tasks of one group, the others have their turn, for a bounded number of lists', async () => {
  const { open, fresh } = begin()
  const { store, kv } = open()
  for (let n = 1; n <= 5_000; n++) await store.insert([{ task: fresh(n, { group: 'big' }) }], { now: null })
  for (let n = 0; n < 30; n++)
    await store.insert([{ task: fresh(6_000 + n, { group: `small ${n % 3}` }) }], { now: null })
  kv.take()
  let after: string | null = null
  for (let turn = 0; turn < 3; turn++) {
    const { leased }: ClaimResult = await look(store, limitsOf(null, null, after), { limit: 4, op: `turn-${turn}` })
    expect(leased.map(({ group }) => group).sort()).toEqual(['big', 'small 0', 'small 1', 'small 2'])
    after = leased.at(-1)!.group
  }
  expect(kv.take()['LIST']).toBeLessThanOrEqual(5)
  // Full groups are passed over without a look at what waits in them.
  const { leased } = await look(store, limitsOf(1), { limit: 4, op: 'full' })
  expect(leased.map(({ group }) => group).sort()).toEqual(['big', 'small 0', 'small 1', 'small 2'])
  kv.take()
  const again = await look(store, limitsOf(1), { limit: 4, op: 'again' })
  expect([again.leased, again.full?.length]).toEqual([[], 4])
  expect(kv.log.filter((line) => line.startsWith('GET tasks/'))).toEqual([])
  await store.close()
})

test('a queue without limits finds all grouped tasks behind a long line of others', async () => {
  const { open, fresh } = begin()
  const { store, kv } = open()
  const count = 1_400
  for (let n = 0; n < count; n++) {
    await store.insert([{ task: fresh(5_000 + n) }], { now: null })
    await store.insert([{ task: fresh(n, { group: `g${n % 4}` }) }], { now: null })
  }
  kv.take()
  const ids = new Set<string>()
  for (let looks = 0; ids.size < 2 * count && looks < 60; looks++) {
    const { leased } = await store.claim(want({ limit: 100, now: null, leaseTtl: LEASE, op: `look-${looks}` }))
    for (const { id } of leased) ids.add(id)
    // They are older.
    if (looks === 2) expect([...ids].every((id) => id < idOf(5_000))).toBe(true)
  }
  expect(ids.size).toBe(2 * count)
  expect(kv.take()['LIST']).toBeLessThanOrEqual(40)
  await store.close()
})

test('the register of a group that has been empty for ten minutes is swept, one with places is not', async () => {
  const { clock, map, open, fresh } = begin()
  const { store } = open()
  await store.insert([{ task: fresh(1, { group: 'gone' }) }, { task: fresh(2, { group: 'here' }) }], { now: null })
  const [gone] = (await look(store, limitsOf(1))).leased.filter(({ group }) => group === 'gone')
  await store.commit([
    machine.complete(gone!, { token: gone!.lease!.token }, { text: '1', encoding: 'json' }, clock.wall()),
  ])
  const registers = () => [...map.entries.keys()].filter((key) => key.startsWith('places/'))
  expect(registers()).toHaveLength(2)
  await store.close()
  for (const later of [0, 700_000]) {
    await clock.advance(later)
    const { store: sweeping } = open()
    // The first removal of a process sweeps.
    await sweeping.remove([{ id: idOf(9), revision: 1, endKey: false }])
    await sweeping.close()
    expect(registers()).toHaveLength(later === 0 ? 2 : 1)
  }
  const { store: other } = open()
  await other.insert([{ task: fresh(3, { group: 'gone' }) }, { task: fresh(4, { group: 'here' }) }], { now: null })
  expect((await look(other, limitsOf(1), { op: 'other' })).leased.map(({ id }) => id)).toEqual([idOf(3)])
  await other.close()
})

test('within a group, a higher priority goes first, though it came behind a long line', async () => {
  const { open, fresh } = begin()
  const { store } = open()
  for (let n = 1; n <= 300; n++) await store.insert([{ task: fresh(n, { group: 'a' }) }], { now: null })
  await store.insert([{ task: fresh(301, { group: 'a', priority: 5 }) }], { now: null })
  const { leased } = await look(store, limitsOf(1), { limit: 1 })
  expect(leased.map(({ id }) => id)).toEqual([idOf(301)])
  await store.close()
})

/** Lists from a copy of the hints that is sorted once: none is added or removed meanwhile. */
const sortedOnce = (map: KeyValueMap) => {
  let sorted: string[] | null = null
  return (kv: MemoryKeyValue): MemoryKeyValue => {
    kv.list = async (prefix, { after = '', limit }) => {
      sorted ??= [...map.entries.keys()].filter((key) => key.startsWith('ready/')).sort()
      const begin = sorted.findIndex((key) => key > after && key.startsWith(prefix))
      if (begin === -1) return []
      return sorted.slice(begin, begin + limit).filter((key) => key.startsWith(prefix))
    }
    return kv
  }
}

test('behind more full groups than one claim can look at, the next claims reach the one that has a place', {
  timeout: 120_000,
}, async () => {
  const { map, open, fresh } = begin()
  const { store: producer } = open()
  const { store, kv } = open(sortedOnce(map))
  // Each group fills a page, so that each needs a list.
  const groups = 50
  for (let g = 0; g < groups; g++)
    await producer.insert(
      Array.from({ length: 1_001 }, (_, n) => ({
        task: fresh(g * 2_000 + n, { group: `g${g}`, expiresAt: 9e12 + n }),
      })),
      { now: null },
    )
  const started = new Set<string>()
  for (let looks = 0; looks < 40 && started.size < groups; looks++) {
    kv.take()
    // The cursor of the caller stays where it is.
    const { leased } = await look(store, limitsOf(1), { limit: 5, op: `look-${looks}` })
    for (const { group } of leased) started.add(group!)
    expect(kv.take()['LIST'] ?? 0).toBeLessThanOrEqual(44)
  }
  expect(started.size).toBe(groups)
  await store.close()
  await producer.close()
})
