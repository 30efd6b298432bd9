/** SPEC 9.5: permits of a rate. Whoever asks when, and uses them as late as they are valid, no window has more than it may. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  NO_STARTS,
  overAt,
  parseRate,
  type Rate,
  type RateInForce,
  type RateState,
  reserve,
  settle,
  slackOf,
} from '../../../src/core/flow/rate.ts'

const inForce = (rate: Rate, burst = 1, took = 0): RateInForce => ({
  rate,
  burst,
  slack: slackOf(rate, 5_000) + 2 * took,
  validity: Math.max(1_000, 2 * took),
})

const asked = (state: RateState, now: number, wanted: number, rate: RateInForce) =>
  reserve(state, now, { id: `at-${now}`, wanted }, rate)

/** Workers that look again as soon as they may, for so long. A look claims `latency` after it has reserved, and hears of it half as much later. */
const startsOf = (
  rate: RateInForce,
  {
    latency,
    lasts,
    workers = 1,
    wanted = 1_000,
  }: { latency: number; lasts: number; workers?: number; wanted?: number },
): number[] => {
  const starts: number[] = []
  let state = NO_STARTS
  const ends = Math.ceil(latency / 2)
  const next = Array.from({ length: workers }, (_, worker) => ({ at: worker, run: (now: number) => look(worker, now) }))
  const look = (worker: number, now: number): void => {
    const id = `${worker}-${now}`
    const reserved = reserve(state, now, { id, wanted }, rate)
    state = reserved.state
    // A timer is late.
    if (reserved.permits === 0) {
      plan(worker, Math.max(reserved.next, now + 1) + 1, look)
      return
    }
    const at = now + latency
    const begun = at > reserved.notAfter ? [] : Array.from({ length: reserved.permits }, () => at)
    starts.push(...begun)
    plan(worker, at + ends, (_, then) => {
      state = settle(state, { id, begun }, rate)
      plan(worker, Math.max(then, reserve(state, then, { id, wanted: 0 }, rate).next) + 1, look)
    })
  }
  const plan = (worker: number, at: number, what: (worker: number, now: number) => void): void => {
    next[worker] = { at, run: (now) => what(worker, now) }
  }
  for (;;) {
    const first = next.reduce((a, b) => (b.at < a.at ? b : a))
    if (first.at > lasts) return starts
    first.run(first.at)
  }
}

const mostInAWindow = (starts: readonly number[], per: number): number => {
  const inOrder = starts.toSorted((a, b) => a - b)
  let [most, first] = [0, 0]
  for (const [i, at] of inOrder.entries()) {
    while (inOrder[first]! <= at - per) first++
    most = Math.max(most, i - first + 1)
  }
  return most
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

  it('gives no window more than its count and its burst, however late permits are used, returned or lost', () => {
    fc.assert(
      fc.property(
        fc.record({
          count: fc.integer({ min: 1, max: 90 }),
          per: fc.integer({ min: 1_000, max: 20_000 }),
          burst: fc.integer({ min: 1, max: 5 }),
          slow: fc.integer({ min: 0, max: 4_000 }),
          asks: fc.array(
            fc.record({
              after: fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 9_000 })),
              wanted: fc.integer({ min: 1, max: 50 }),
              lead: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 1_000 })),
              late: fc.double({ min: 0, max: 1, noNaN: true }),
              unused: fc.double({ min: 0, max: 1, noNaN: true }),
              told: fc.option(fc.integer({ min: 0, max: 5_000 })),
            }),
            { maxLength: 120 },
          ),
        }),
        ({ count, per, burst, slow, asks }) => {
          const rate = inForce({ count, per }, burst, slow)
          const starts: number[] = []
          let [state, now, asking] = [NO_STARTS, 1_000_000, 0]
          let ended: { at: number; id: string; begun: number[] }[] = []
          for (const { after, wanted, lead, late, unused, told } of asks) {
            now += after
            for (const one of ended.filter(({ at }) => at <= now)) state = settle(state, one, rate)
            ended = ended.filter(({ at }) => at > now)
            const id = `${asking++}`
            const begins = now + lead
            const reserved = reserve(state, begins, { id, wanted }, rate)
            state = reserved.state
            const used = reserved.permits - Math.floor(reserved.permits * unused)
            const usedAt = begins + late * (reserved.notAfter - begins)
            const begun = Array.from({ length: used }, () => usedAt)
            starts.push(...begun)
            if (told !== null) ended.push({ at: usedAt + told, id, begun })
          }
          expect(mostInAWindow(starts, per)).toBeLessThanOrEqual(count + burst - 1)
        },
      ),
      { numRuns: 500 },
    )
  })

  const table = ['1/1s', '10/1s', '60/1s', '1000/1s', '7/3s', '60/1m', '1800/1m'].flatMap((text) =>
    [0, 5, 50, 150, 900, 3_000].map((latency): [string, number] => [text, latency]),
  )
  it.each(table)('of %s is nearly reached and never exceeded where a claim takes %i ms', (text, latency) => {
    const rate = parseRate(text, 'rate')
    const lasts = 10 * Math.max(rate.per, latency)
    for (const workers of [1, 3]) {
      const starts = startsOf(inForce(rate, 1, Math.ceil(1.5 * latency)), { latency, lasts, workers })
      expect(mostInAWindow(starts, rate.per)).toBeLessThanOrEqual(rate.count)
      // A start counts from its reservation, so a permit comes around in a window and a claim.
      const least = (0.93 * lasts * rate.count) / (rate.per + latency)
      expect(starts.length).toBeGreaterThanOrEqual(least - 1)
    }
  })

  it('keeps nothing for later: after a long rest a burst is all there is', () => {
    const rate = inForce({ count: 60, per: 60_000 }, 3)
    expect(asked({ ...NO_STARTS, free: 0 }, 10_000_000, 100, rate).permits).toBe(3)
  })

  it('says when there is another permit', () => {
    const rate = inForce({ count: 60, per: 60_000 })
    const first = asked(NO_STARTS, 1_000, 5, rate)
    expect(first.permits).toBe(1)
    const told = settle(first.state, { id: 'at-1000', begun: [1_004] }, rate)
    const { next } = asked(told, 1_005, 0, rate)
    expect(asked(told, next - 1, 1, rate).permits).toBe(0)
    expect(asked(told, next, 1, rate).permits).toBe(1)
  })

  it('counts the permits of a process that died as used as late as they were valid, and no longer', () => {
    const rate = inForce({ count: 1, per: 10_000 })
    const { state, notAfter } = asked(NO_STARTS, 1_000, 1, rate)
    expect(asked(state, notAfter + 9_999, 1, rate).permits).toBe(0)
    expect(asked(state, notAfter + 10_000, 1, rate).permits).toBe(1)
  })

  it('says what one without starts says once it is over', () => {
    const step = fc.record({
      wait: fc.integer({ min: 0, max: 12_000 }),
      wanted: fc.integer({ min: 1, max: 12 }),
      late: fc.integer({ min: 0, max: 20_000 }),
      isTold: fc.boolean(),
    })
    const rates = fc.record({
      count: fc.integer({ min: 1, max: 10 }),
      per: fc.constantFrom(1_000, 10_000),
      burst: fc.integer({ min: 1, max: 10 }),
      took: fc.constantFrom(0, 900, 10_000),
    })
    fc.assert(
      fc.property(rates, fc.array(step, { maxLength: 20 }), ({ count, per, burst, took }, steps) => {
        const rate = inForce({ count, per }, burst, took)
        let [state, now] = [NO_STARTS, 100_000]
        for (const { wait, wanted, late, isTold } of steps) {
          now += wait
          const reserved = asked(state, now, wanted, rate)
          const begun = Array.from({ length: reserved.permits }, () => Math.min(now + late, reserved.notAfter))
          state = isTold ? settle(reserved.state, { id: `at-${now}`, begun }, rate) : reserved.state
        }
        const at = Math.max(now, Math.ceil(overAt(state, rate)))
        expect(asked(state, at, 100, rate).permits).toBe(asked(NO_STARTS, at, 100, rate).permits)
      }),
    )
  })

  it('binds from now on when it is raised, or the clock is set back', () => {
    const old = settle(
      asked(NO_STARTS, 5_000, 1, inForce({ count: 1, per: 86_400_000 })).state,
      { id: 'at-5000', begun: [5_000] },
      inForce({ count: 1, per: 86_400_000 }),
    )
    const raised = inForce({ count: 60, per: 60_000 })
    expect(asked(old, 6_000, 1, raised).permits).toBe(1)
    const back = { free: 9e12, starts: [[9e12, 60] as const], held: [{ id: 'x', until: 9e12, count: 1 }] }
    const { next } = asked(back, 7_000, 1, raised)
    expect(next).toBeLessThanOrEqual(7_000 + 60_000)
  })
})
