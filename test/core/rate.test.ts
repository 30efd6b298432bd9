/** SPEC 9.5: permits of a rate. Whoever asks when, and uses them as late as they are valid, no window has more than it may. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { giveBack, parseRate, type Rate, type RateInForce, reserve, validityOf } from '../../src/core/rate.ts'

const inForce = (rate: Rate, burst = 1, leaseTtl = 5_000): RateInForce => ({
  rate,
  burst,
  validity: validityOf(rate, leaseTtl),
})

const mostInAWindow = (starts: readonly number[], per: number): number => {
  const inOrder = starts.toSorted((a, b) => a - b)
  return Math.max(0, ...inOrder.map((first) => inOrder.filter((at) => at >= first && at < first + per).length))
}

describe('a rate', () => {
  it.each([
    ['60/1m', { count: 60, per: 60_000 }],
    [' 10 / 1s ', { count: 10, per: 1_000 }],
    ['5/h', { count: 5, per: 3_600_000 }],
    ['1000000/1d', { count: 1_000_000, per: 86_400_000 }],
  ])('is read from %s', (text, rate) => {
    expect(parseRate(text, 'rate')).toEqual(rate)
  })

  it.each(['', '60', '60/', '/1m', '0/1m', '1/100ms', '1/2d', '-1/1m', '1.5/1m', 'x/1m', '60/1x'])(
    'refuses %j',
    (text) => {
      expect(() => parseRate(text, 'rate')).toThrow(/rate/)
    },
  )

  it('gives no window more than its count and its burst, however late permits are used', () => {
    fc.assert(
      fc.property(
        fc.record({
          count: fc.integer({ min: 1, max: 40 }),
          per: fc.integer({ min: 1_000, max: 20_000 }),
          burst: fc.integer({ min: 1, max: 5 }),
          asks: fc.array(
            fc.record({
              after: fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 9_000 })),
              wanted: fc.integer({ min: 1, max: 50 }),
              late: fc.double({ min: 0, max: 1, noNaN: true }),
              unused: fc.double({ min: 0, max: 1, noNaN: true }),
            }),
            { maxLength: 120 },
          ),
        }),
        ({ count, per, burst, asks }) => {
          const rate = inForce({ count, per }, burst)
          const starts: number[] = []
          let [free, now]: [number | null, number] = [null, 1_000_000]
          for (const { after, wanted, late, unused } of asks) {
            now += after
            const reserved = reserve(free, now, wanted, rate)
            const used = reserved.permits - Math.floor(reserved.permits * unused)
            const usedAt = now + late * (reserved.notAfter - now)
            for (let i = 0; i < used; i++) starts.push(usedAt)
            free = giveBack(reserved.free, reserved.permits - used, rate)
          }
          expect(mostInAWindow(starts, per)).toBeLessThanOrEqual(count + burst - 1)
        },
      ),
      { numRuns: 500 },
    )
  })

  it.each(['60/1m', '10/1s', '7/3s', '1000/1s'])(
    'of %s holds when the first permit is used as late as it may be',
    (text) => {
      const rate = inForce(parseRate(text, 'rate'))
      const starts: number[] = []
      let [free, now]: [number | null, number] = [null, 0]
      while (now < 3 * rate.rate.per) {
        const reserved = reserve(free, now, 1_000, rate)
        for (let i = 0; i < reserved.permits; i++) starts.push(starts.length === 0 ? reserved.notAfter : now)
        free = reserved.free
        now = Math.max(now + 1, reserved.next)
      }
      expect(mostInAWindow(starts, rate.rate.per)).toBeLessThanOrEqual(rate.rate.count)
    },
  )

  it.each([
    ['60/1m', 57],
    ['10/1s', 9],
    ['1000/1s', 900],
  ])('of %s gives nearly all of its count to one that asks at every permit', (text, least) => {
    const rate = inForce(parseRate(text, 'rate'))
    let [free, now, permits]: [number | null, number, number] = [null, 0, 0]
    while (now < rate.rate.per) {
      const reserved = reserve(free, now, 1_000, rate)
      permits += reserved.permits
      free = reserved.free
      // A timer is late.
      now = Math.max(now + 1, reserved.next) + 2
    }
    expect(permits).toBeGreaterThanOrEqual(least)
  })

  it('keeps nothing for later: after a long rest a burst is all there is', () => {
    const rate = inForce({ count: 60, per: 60_000 }, 3)
    expect(reserve(0, 10_000_000, 100, rate).permits).toBe(3)
  })

  it('says when there is another permit', () => {
    const rate = inForce({ count: 60, per: 60_000 })
    const first = reserve(null, 1_000, 5, rate)
    expect(first.permits).toBe(1)
    expect(reserve(first.free, first.next - 1, 1, rate).permits).toBe(0)
    expect(reserve(first.free, first.next, 1, rate).permits).toBe(1)
  })
})
