import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoff, DEFAULT_RETRY_POLICY, parseRetryPolicy } from '../../src/core/retry.ts'

const policies = fc.record({
  base: fc.integer({ min: 0, max: 3_600_000 }),
  multiplier: fc.double({ min: 1, max: 10, noNaN: true }),
  max: fc.integer({ min: 0, max: 86_400_000 }),
  jitter: fc.constantFrom('full' as const, 'equal' as const, 'none' as const),
})
const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('backoff', () => {
  it('[H04][A25] lies between 0 and min(base × multiplier^retryCount, max), whatever the numbers', () => {
    fc.assert(
      fc.property(policies, fc.nat({ max: 10_000 }), dice, (policy, retryCount, random) => {
        const delay = backoff(policy, retryCount, random)
        const cap = policy.base === 0 ? 0 : Math.min(policy.base * policy.multiplier ** retryCount, policy.max)
        expect(Number.isInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(
          policy.jitter === 'full' ? 0 : Math.floor(policy.jitter === 'equal' ? cap / 2 : cap),
        )
        expect(delay).toBeLessThanOrEqual(Math.round(cap))
      }),
    )
  })

  it('grows in its cap, not in each roll', () => {
    const caps = Array.from({ length: 9 }, (_, n) => backoff(null, n, 0.999_999_9))
    expect(caps).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
    expect(backoff(null, 5, 0)).toBe(0)
  })

  it('jitter none is the cap, equal is its upper half', () => {
    const policy = { base: 1_000, multiplier: 2, max: 8_000 }
    expect(backoff({ ...policy, jitter: 'none' }, 2, 0.3)).toBe(4_000)
    expect([
      backoff({ ...policy, jitter: 'equal' }, 2, 0),
      backoff({ ...policy, jitter: 'equal' }, 2, 0.999_999),
    ]).toEqual([2_000, 4_000])
  })
})

describe('a retry policy', () => {
  it('is filled with defaults', () => {
    expect(parseRetryPolicy({})).toEqual(DEFAULT_RETRY_POLICY)
    expect(parseRetryPolicy({ base: '1m' })).toEqual({ base: 60_000, multiplier: 2, max: 60_000, jitter: 'full' })
  })

  it('is refused with the part named', () => {
    const refused: [object, RegExp][] = [
      [{ multiplier: 0.5 }, /multiplier/],
      [{ multiplier: Number.NaN }, /multiplier/],
      [{ jitter: 'some' }, /jitter/],
      [{ base: '1m', max: '1s' }, /max/],
      [{ bases: '1m' }, /bases/],
      [{ base: 500 }, /bare number/],
    ]
    for (const [policy, message] of refused)
      expect(() => parseRetryPolicy(policy as never), JSON.stringify(policy)).toThrow(message)
  })
})
