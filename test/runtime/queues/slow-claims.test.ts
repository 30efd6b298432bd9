/** SPEC 9.5: a rate is nearly reached, and never exceeded, also where a claim takes long. */
import { expect, it } from 'vitest'
import { parseRate } from '../../../src/core/flow/rate.ts'
import type { LimitOptions } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { begin } from '../setup.ts'

const LASTS = 20_000

/** Instants at which the tasks of one group, or of none, were claimed. Before each claim, `latency` milliseconds pass. */
const claimsUnder = async (
  limits: LimitOptions,
  latency: () => number,
  groups: readonly (string | null)[],
  writes = 0,
) => {
  let wait = async (_: number): Promise<void> => {}
  const slow = (store: Store): Store =>
    new Proxy(store, {
      get: (target, name) => {
        if (name === 'claim')
          return async (request: Parameters<Store['claim']>[0]) => {
            await wait(latency())
            return target.claim(request)
          }
        if (name === 'documents')
          return new Proxy(target.documents, {
            get: (documents, method) => {
              if (method !== 'put') return Reflect.get(documents, method, documents)
              return async (...put: Parameters<typeof documents.put>) => {
                if (put[0].startsWith('rate/') && writes > 0) await wait(writes)
                return documents.put(...put)
              }
            },
          })
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  const { clock, client, another } = await begin({ through: slow })
  wait = (time) => new Promise((done) => clock.after(time, done))
  await client.queue('default').limit(limits)
  const ids = await client.submitMany(
    Array.from({ length: 1_400 }, (_, i) => {
      const group = groups[i % groups.length]!
      return { type: 'work', input: null, ...(group === null ? null : { group }) }
    }),
  )
  const claims = new Map<string | null, number[]>(groups.map((group) => [group, []]))
  for (const one of [client, await another({ through: slow })])
    one
      .worker({ concurrency: 50, leaseTtl: '5s' })
      .handle('work', (_, { task }) => {
        claims.get(task.group)!.push(clock.wall())
        return null
      })
      .start()
  for (let passed = 0; passed < LASTS; passed += 5) await clock.advance(5)
  expect(ids.every(({ ok }) => ok)).toBe(true)
  return claims
}

const mostWithin = (claims: readonly number[], window: number): number =>
  Math.max(...claims.map((from) => claims.filter((at) => at >= from && at < from + window).length))

it.each([
  ['60/1s', 0, 1_140],
  ['60/1s', 150, 960],
  ['60/1s', 900, 380],
  ['10/1s', 150, 160],
  ['1/1s', 3_000, 3],
  ['1800/1m', 150, 580],
  ['120/1m', 3_000, 30],
])('a rate of %s goes on where a claim takes %i ms: at least %i starts in 20 seconds', async (text, latency, least) => {
  const { count, per } = parseRate(text, 'rate')
  const claims = (await claimsUnder({ rate: text }, () => latency, [null])).get(null)!
  expect(mostWithin(claims, per)).toBeLessThanOrEqual(count)
  expect(claims.length).toBeGreaterThanOrEqual(least)
})

it('a rate goes on where reservations take as long as claims', async () => {
  const claims = (await claimsUnder({ rate: '60/1s' }, () => 150, [null], 150)).get(null)!
  expect(mostWithin(claims, 1_000)).toBeLessThanOrEqual(60)
  expect(claims.length).toBeGreaterThanOrEqual(860)
})

it('a rate of each group goes on where a claim takes long, and now and then longer', async () => {
  let claims = 0
  const latency = (): number => (++claims % 7 === 0 ? 1_500 : 150)
  const byGroup = await claimsUnder({ ratePerGroup: '20/1s' }, latency, ['a', 'b'])
  for (const starts of byGroup.values()) {
    expect(mostWithin(starts, 1_000)).toBeLessThanOrEqual(20)
    expect(starts.length).toBeGreaterThanOrEqual(190)
  }
})

it('a queue without tasks asks no more often than without a rate', async () => {
  const { clock, client, store } = await begin()
  await client.queue('default').limit({ rate: '60/1s' })
  let looks = 0
  const claim = store.claim.bind(store)
  store.claim = (request) => {
    looks++
    return claim(request)
  }
  client
    .worker({ pollInterval: '1s' })
    .handle('work', () => null)
    .start()
  await clock.advance(10_000)
  expect(looks).toBeLessThanOrEqual(12)
})
