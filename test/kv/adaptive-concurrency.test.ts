/** How many requests go out at once, to a server that keeps up and to one that does not. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { HoldfastError } from '../../src/core/errors.ts'
import { AdaptiveConcurrency } from '../../src/store/kv/access/adaptive-concurrency.ts'
import { RetryingKeyValue } from '../../src/store/kv/access/retrying-key-value.ts'
import { MemoryKeyValue } from './places/memory-key-value.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => vi.useRealTimers())

const ask = async (concurrency: AdaptiveConcurrency, isAnswered: boolean): Promise<void> => {
  await concurrency
    .run(async () => {
      if (!isAnswered) throw new Error('503')
    })
    .catch(() => concurrency.failed())
  vi.advanceTimersByTime(20)
}

test('one failure in ten does not lower the limit', async () => {
  const concurrency = new AdaptiveConcurrency({ start: 32, most: 64 })
  for (let n = 0; n < 500; n++) await ask(concurrency, n % 10 !== 0)
  expect(concurrency.limit).toBeGreaterThanOrEqual(32)
})

test('a server that only fails gets two requests at once within five seconds, and all again when it has recovered', async () => {
  const concurrency = new AdaptiveConcurrency({ start: 32, most: 64 })
  for (let n = 0; n < 250; n++) await ask(concurrency, false)
  expect(concurrency.limit).toBe(2)
  for (let n = 0; n < 1_500; n++) await ask(concurrency, true)
  expect(concurrency.limit).toBeGreaterThan(32)
})

test('never more run at once than the limit, but what a lease depends on does not wait', async () => {
  const concurrency = new AdaptiveConcurrency({ start: 2, most: 2 })
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const begun: number[] = []
  const calls = gates.map((gate, n) =>
    concurrency.run(() => {
      begun.push(n)
      return gate.promise
    }),
  )
  const urgent = concurrency.run(async () => void begun.push(9), 'urgent')
  const repeat = concurrency.run(async () => void begun.push(8), 'next')
  await urgent
  expect(begun).toEqual([0, 1, 9])
  gates[0]!.resolve()
  await repeat
  for (const gate of gates) gate.resolve()
  await Promise.all(calls)
  expect(begun).toEqual([0, 1, 9, 8, 2, 3])
})

test('a write whose answer is lost again and again is recognised, and made once', async () => {
  vi.useRealTimers()
  let writes = 0
  class Deaf extends MemoryKeyValue {
    override async create(key: string, value: string): Promise<string | null> {
      writes++
      await super.create(key, value)
      throw new HoldfastError('STORE_UNAVAILABLE')
    }
  }
  const kv = new RetryingKeyValue(new Deaf())
  expect(await kv.create('a', 'mine')).not.toBeNull()
  expect(await kv.get('a')).toMatchObject({ value: 'mine' })
  expect(writes).toBe(1)
  expect(await kv.create('a', 'other')).toBeNull()
})
