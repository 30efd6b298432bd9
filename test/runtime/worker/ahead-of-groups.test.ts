/** SPEC 9.6: where groups take turns a worker claims ahead of its slots, but no second task of a group whose first it has not started. */
import { expect, it } from 'vitest'
import type { Client } from '../../../src/index.ts'
import { withMethods } from '../../crash/planted.ts'
import { type Bench, begin } from '../setup.ts'

const SLOTS = 10

interface Claimer {
  readonly client: Client
  /** How many tasks each claim returned that returned any. */
  readonly claims: number[]
  readonly started: Set<string>
  /** Groups that had two tasks that were leased and not started. */
  readonly doubled: string[]
  /** Of each claim ahead of the slots: how many tasks it asked for, and how many groups it left out. */
  readonly ahead: { readonly limit: number; readonly without: number }[]
}

const claimer = async (bench: Bench): Promise<Claimer> => {
  const leased = new Map<string, string>()
  const seen = {
    claims: [] as number[],
    started: new Set<string>(),
    doubled: [] as string[],
    ahead: [] as Claimer['ahead'],
  }
  const client = await bench.another({
    through: (store) =>
      withMethods(store, {
        claim: async (want) => {
          const turns = want.limits?.turns
          if (turns?.mostEach === 1 && want.limit > SLOTS)
            seen.ahead.push({ limit: want.limit, without: turns.without.length })
          const look = await store.claim(want)
          if (look.leased.length > 0) seen.claims.push(look.leased.length)
          // What fits the slots starts as soon as it arrives.
          if (look.leased.length <= SLOTS) return look
          for (const { id, group } of look.leased) {
            const waiting = [...leased].some(([other, of]) => of === group && !seen.started.has(other))
            if (waiting) seen.doubled.push(group!)
            leased.set(id, group!)
          }
          return look
        },
      }),
  })
  return { ...seen, client }
}

const submit = (client: Client, count: number, groups: number, priority = 0): Promise<unknown> =>
  client.submitMany(
    Array.from({ length: count }, (_, i) => ({ type: 'work', input: i, group: `g${i % groups}`, priority })),
  )

it.each([{ perGroup: 2 }, { fair: true }])(
  'one claim fills more than the slots where as many groups wait: %j',
  async (limits) => {
    const bench = await begin()
    await bench.client.queue('default').limit(limits)
    await submit(bench.client, 1_000, 200)
    const { client, claims, started, doubled } = await claimer(bench)
    const worker = client.worker({ concurrency: SLOTS }).handle('work', async (_, { task }) => {
      started.add(task.id)
      return null
    })
    await bench.passing(worker.drain())
    expect(started.size).toBe(1_000)
    expect(claims.length, 'far fewer than the hundred that fill only slots').toBeLessThan(40)
    expect(Math.max(...claims)).toBeGreaterThan(SLOTS)
    expect(doubled).toEqual([])
  },
)

it('no claim ahead asks for more tasks than there are groups to take them from, but for one a second', async () => {
  const bench = await begin()
  await bench.client.queue('default').limit({ perGroup: 2 })
  await submit(bench.client, 2_500, 100)
  const { client, started, ahead } = await claimer(bench)
  const worker = client.worker({ concurrency: SLOTS }).handle('work', async (_, { task }) => {
    started.add(task.id)
    return null
  })
  const begun = bench.clock.mono()
  await bench.passing(worker.drain())
  const seconds = Math.ceil((bench.clock.mono() - begun) / 1_000)
  expect(started.size).toBe(2_500)
  expect(ahead.length).toBeGreaterThan(20)
  const beyond = ahead.filter(({ limit, without }) => limit + without > 100)
  expect(beyond.length, JSON.stringify(beyond)).toBeLessThanOrEqual(2 + seconds)
})

it('a worker whose slots are more than the groups fills them with further tasks of these groups, also when the look before met many groups', async () => {
  const bench = await begin()
  await bench.client.queue('default').limit({ perGroup: 8 })
  await submit(bench.client, 400, 100)
  await submit(bench.client, 100, 2, -1)
  let [running, most, ran] = [0, 0, 0]
  const { client } = await claimer(bench)
  const worker = client.worker({ concurrency: SLOTS }).handle('work', async () => {
    ran++
    if (ran <= 400) return null
    most = Math.max(most, ++running)
    await new Promise<void>((done) => bench.clock.after(500, done))
    running--
    return null
  })
  worker.start()
  // What it started lately makes it claim ahead; the next look on its own comes later.
  for (let i = 0; i < 50; i++) await bench.clock.advance(2)
  expect(ran).toBeGreaterThan(400)
  expect(most).toBe(SLOTS)
  await bench.passing(worker.stop())
})
