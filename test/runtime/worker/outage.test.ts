/** A worker whose store is away: it asks seldom, and what it says can be read in a log. */
import { expect, test } from 'vitest'
import type { Logger } from '../../../src/index.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { begin } from '../setup.ts'

const scene = async () => {
  let isAway = false
  let calls = 0
  const lines: string[] = []
  const write = (message: string): void => void lines.push(message)
  const logger: Logger = { debug: () => {}, info: write, warn: write, error: write }
  const bench = await begin({
    logger,
    through: (store) =>
      lossy({ ...bound(store), claimsAtOnce: 2 }, () => {
        calls++
        return isAway ? 'drop-request' : 'pass'
      }),
  })
  return {
    ...bench,
    lines,
    callsIn: async (milliseconds: number) => {
      const before = calls
      await bench.clock.advance(milliseconds)
      return calls - before
    },
    away: (is: boolean) => {
      isAway = is
    },
  }
}

/** Its methods as plain functions. */
const bound = <T extends object>(store: T): T =>
  new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    ownKeys: (target) => [...Reflect.ownKeys(target), ...Reflect.ownKeys(Object.getPrototypeOf(target) as object)],
    getOwnPropertyDescriptor: (target, name) => ({
      value: bound(target)[name as keyof T],
      enumerable: name !== 'constructor',
      configurable: true,
    }),
  })

test('a store that is away is asked about once in several seconds, whatever a worker does', async () => {
  const { client, clock, callsIn, away } = await scene()
  client
    .worker({ scheduler: false })
    .handle('work', () => {})
    .start()
  await clock.advance(5_000)
  away(true)
  await clock.advance(30_000)
  expect(await callsIn(60_000)).toBeLessThan(60)
})

test('it is told in the log when it goes, every minute while it is away, and when it is back', async () => {
  const { client, clock, lines, away } = await scene()
  client
    .worker({ scheduler: false })
    .handle('work', () => {})
    .start()
  await clock.advance(5_000)
  away(true)
  await clock.advance(190_000)
  const ofLooking = (): string[] => lines.filter((line) => /look(ing)? for work/.test(line))
  expect(ofLooking().length).toBe(4)
  expect(ofLooking()[0]).toMatch(/^cannot look for work: .*; trying again$/)
  expect(ofLooking()[1]).toMatch(/^cannot look for work for 1m( \d+s)?: .*; still trying$/)
  away(false)
  await clock.advance(10_000)
  expect(ofLooking().at(-1)).toMatch(/^looking for work again, after 3m/)
  expect(ofLooking().length).toBe(5)
})

test('a worker whose store is away stops at once', async () => {
  const { client, clock, away } = await scene()
  const worker = client.worker({ scheduler: false }).handle('work', () => {})
  worker.start()
  await clock.advance(1_000)
  away(true)
  await clock.advance(60_000)
  let isStopped = false
  void worker.stop().then(() => {
    isStopped = true
  })
  await clock.advance(1_000)
  expect(isStopped).toBe(true)
})
