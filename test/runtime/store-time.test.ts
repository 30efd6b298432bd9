/** What a client takes for the store's time, by how long the answers took. */
import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../../src/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { StoreTime } from '../../src/runtime/store-time.ts'
import type { Store } from '../../src/store/store.ts'

const START = Date.UTC(2026, 0, 28)

/** A server that is as exact as a clock can be, and answers after so many milliseconds each; null: the answer is lost. */
const slow = (delays: (number | null)[]) => {
  let [mono, asked, set] = [0, 0, 0]
  const clock: Clock = { mono: () => mono, wall: () => mono, after: () => () => {} }
  const store = {
    capabilities: new Set(),
    now: async () => {
      asked++
      const delay = delays.length > 0 ? delays.shift()! : 1
      if (delay === null) throw new HoldfastError('STORE_UNAVAILABLE', 'the answer is lost')
      const at = START + set + mono + delay / 2
      mono += delay
      return { at, uncertainty: 1 }
    },
  } as unknown as Store
  return {
    time: new StoreTime(store, clock),
    asked: () => asked,
    passed: () => mono,
    pass: (by: number) => {
      mono += by
    },
    /** As an operator sets the clock of the server. */
    set: (by: number) => {
      set += by
    },
  }
}

describe('the time of the store', () => {
  test('is not uncertain because the first connection took long', async () => {
    const { time, passed } = slow([3_000, 2])
    await time.anchor()
    expect(time.uncertainty).toBe(3)
    expect(START + passed() - time.now()).toBeLessThanOrEqual(4)
  })

  test('is asked for once where the answer comes soon', async () => {
    const { time, asked } = slow([20])
    await time.anchor()
    expect(asked()).toBe(1)
  })

  test('is as certain as the best of a few answers where all take long', async () => {
    const { time, asked } = slow([900, 500, 300, 700, 1])
    await time.anchor()
    expect(asked()).toBe(4)
    expect(time.uncertainty).toBe(301)
  })

  test('is read again within half a minute: the clock of the server may have been set', async () => {
    for (const by of [600_000, -600_000]) {
      const { time, passed, pass, set } = slow([1])
      await time.anchor()
      set(by)
      pass(31_000)
      await time.freshen()
      expect(Math.abs(START + passed() + by - time.now())).toBeLessThan(10)
    }
  })

  test('is read again when an answer is lost: what has slept would go by a time that is long over', async () => {
    const { time, passed, pass, set, asked } = slow([1, null, null, 1])
    await time.anchor()
    set(4_000)
    pass(31_000)
    await time.freshen()
    expect(Math.abs(START + passed() + 4_000 - time.now())).toBeLessThan(10)
    expect(asked()).toBe(4)
  })

  test('is the old estimate without contact, after few tries', async () => {
    const { time, pass, asked } = slow([1, null, null, null, null])
    await time.anchor()
    pass(31_000)
    await time.freshen()
    expect(asked()).toBe(4)
  })
})
