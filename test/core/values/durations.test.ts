import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Duration, formatDuration, parseDuration } from '../../../src/core/values/durations.ts'

const parse = (value: unknown): number => parseDuration(value as Duration, 'delay')

describe('a duration', () => {
  it('is read as people write it', () => {
    const read: [Duration, number][] = [
      ['500ms', 500],
      ['30s', 30_000],
      ['5m', 300_000],
      ['1h', 3_600_000],
      ['7d', 604_800_000],
      ['2w', 1_209_600_000],
      ['1h30m', 5_400_000],
      ['1h 30m', 5_400_000],
      ['1.5s', 1_500],
      [' 10S ', 10_000],
      ['0', 0],
      ['0s', 0],
      [0, 0],
      [{ hours: 1, minutes: 30 }, 5_400_000],
      [{ seconds: 0.5 }, 500],
      [{ days: 1, milliseconds: 1 }, 86_400_001],
    ]
    for (const [written, expected] of read) expect(parse(written), JSON.stringify(written)).toBe(expected)
  })

  it('comes back from any parts, written either way', () => {
    fc.assert(
      fc.property(
        fc.record({ d: fc.nat(99), h: fc.nat(99), m: fc.nat(99), s: fc.nat(99), ms: fc.nat(999) }),
        ({ d, h, m, s, ms }) => {
          const total = d * 86_400_000 + h * 3_600_000 + m * 60_000 + s * 1_000 + ms
          expect(parse(`${d}d${h}h${m}m${s}s${ms}ms`)).toBe(total)
          expect(parse({ days: d, hours: h, minutes: m, seconds: s, milliseconds: ms })).toBe(total)
        },
      ),
    )
  })

  it('a bare number is refused, with a message that says why', () => {
    expect(() => parse(30)).toThrow("delay: 30 is a bare number: write '30ms' or '30s', so that the unit is clear")
    expect(() => parse('30')).toThrow("delay: '30' has no unit: write '30s' or '30ms'")
  })

  it('a Date is refused as an instant', () => {
    expect(() => parse(new Date(0))).toThrow('delay: the value given is a Date, which is an instant')
  })

  it('anything else that is not one is refused by INVALID_DURATION, with the field named', () => {
    const nonsense = [
      '',
      'soon',
      '-5s',
      '5 s s',
      '1h-',
      '5x',
      's',
      '1e3s',
      null,
      undefined,
      true,
      [],
      {},
      { hours: -1 },
      { hours: '1' },
      { hours: Number.NaN },
      { weeks: 1 },
      Number.NaN,
      -1,
      Number.POSITIVE_INFINITY,
      () => 1,
      'PT5M',
      '101y',
      '40000d',
      new Date(),
    ]
    for (const value of nonsense) {
      expect(() => parse(value), String(value)).toThrow(
        expect.objectContaining({
          code: 'INVALID_DURATION',
          details: { field: 'delay' },
          message: expect.stringMatching(/^delay: /),
        }),
      )
    }
  })

  it('every text is either parsed or refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[\d.hmsd ]{0,20}$/)), (text) => {
        try {
          const value = parse(text)
          expect(Number.isSafeInteger(value) && value >= 0).toBe(true)
        } catch (error) {
          expect(error).toMatchObject({ code: 'INVALID_DURATION' })
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a duration for people', () => {
  it('has at most two units', () => {
    const shown: [number, string][] = [
      [0, '0ms'],
      [320, '320ms'],
      [45_000, '45s'],
      [9_000_000, '2h 30m'],
      [90_061_000, '1d 1h'],
      [3_600_000, '1h'],
      [3_601_000, '1h'],
      [-5_000, '5s'],
      [999.6, '1s'],
      [59_999, '59s'],
    ]
    for (const [duration, text] of shown) expect(formatDuration(duration), String(duration)).toBe(text)
  })

  it('and is read back as nearly the same', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 400 * 86_400_000 }), (duration) => {
        const back = parse(formatDuration(duration))
        expect(back).toBeLessThanOrEqual(duration)
        expect(duration - back).toBeLessThanOrEqual(Math.max(1_000, duration / 20))
      }),
    )
  })
})
