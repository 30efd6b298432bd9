/** The rule by which a soak fails: what grows turns it red, and what only jumps, wobbles or warms up does not. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FIGURES } from '../bench/soak/figures.ts'
import { plotOf, roundUp } from '../bench/soak/plot.ts'
import { tableOf, verdictsOf } from '../bench/soak/report.ts'
import type { Sample } from '../bench/soak/sample.ts'
import { judged, LEAST_POINTS, type Point, slopeOf, trendOf } from '../bench/soak/trend.ts'
import { Random } from '../src/testing/random.ts'

const BOUND = { share: 0.1, floor: 12 }

const series = (count: number, valueAt: (minute: number) => number): Point[] =>
  Array.from({ length: count }, (_, n) => ({ minute: n + 1, value: valueAt(n + 1) }))

describe('a figure', () => {
  test('that stays is no trend', () => {
    expect(
      trendOf(
        series(60, () => 100),
        BOUND,
      ),
    ).toEqual({ level: 100, growth: 0, allowed: 12, isTrend: false })
  })

  test('that grows by half a megabyte a minute is one, under noise that is ten times as large', () => {
    const random = new Random(1)
    const leaking = series(60, (minute) => 100 + minute / 2 + random.next() * 5)
    expect(trendOf(leaking, BOUND)).toMatchObject({ isTrend: true })
    expect(trendOf(leaking, BOUND)!.growth).toBeCloseTo(39 / 2, -1)
  })

  test('that grows in the first third only is none: that is warm-up', () => {
    expect(
      trendOf(
        series(60, (minute) => Math.min(minute, 20) * 50),
        BOUND,
      )!.isTrend,
    ).toBe(false)
  })

  test('that falls is none', () => {
    expect(
      trendOf(
        series(60, (minute) => 1_000 - minute * 10),
        BOUND,
      )!.isTrend,
    ).toBe(false)
  })

  test('that jumps in a quarter of the minutes is none', () => {
    const random = new Random(2)
    expect(
      trendOf(
        series(60, () => (random.next() < 0.25 ? 5_000 : 100)),
        BOUND,
      )!.isTrend,
    ).toBe(false)
  })

  test('that rises and falls with each sweep of the retention is none', () => {
    expect(
      trendOf(
        series(60, (minute) => 100 + (minute % 4) * 30),
        BOUND,
      )!.isTrend,
    ).toBe(false)
  })

  test('may grow by its share of a large median, or by the floor of a small one', () => {
    const growing = (by: number, from: number): Point[] => series(61, (minute) => from + (minute / 40) * by)
    expect(trendOf(growing(11, 100), BOUND)!.isTrend).toBe(false)
    expect(trendOf(growing(13, 100), BOUND)!.isTrend).toBe(true)
    expect(trendOf(growing(90, 1_000), BOUND)!.isTrend).toBe(false)
    expect(trendOf(growing(115, 1_000), BOUND)!.isTrend).toBe(true)
  })

  test('of too few samples is not judged', () => {
    expect(
      trendOf(
        series(LEAST_POINTS, (minute) => minute * 1_000),
        BOUND,
      ),
    ).toBeNull()
  })
})

test('the slope of a straight line is its slope, whatever a quarter of its points are', () => {
  fc.assert(
    fc.property(fc.integer({ min: -50, max: 50 }), fc.array(fc.nat(1e6), { maxLength: 5 }), (slope, outliers) => {
      const points = series(24, (minute) => minute * slope).map((point, n) =>
        n % 4 === 0 && n / 4 < outliers.length ? { ...point, value: outliers[n / 4]! } : point,
      )
      expect(slopeOf(points)).toBeCloseTo(slope, 6)
    }),
  )
})

test('two thirds of the samples are judged', () => {
  expect(judged(series(60, () => 0)).map(({ minute }) => minute)).toEqual(Array.from({ length: 40 }, (_, n) => n + 21))
})

const samples = (heapAt: (minute: number) => number): Sample[] =>
  series(30, heapAt).map(({ minute, value }) => ({
    minute,
    at: new Date(minute * 60_000).toISOString(),
    processes: { 'worker 1': { rss: 120, heap: value }, serve: { rss: 150, heap: 20 } },
    store: { wal: 16 },
    work: { p50: 10 },
  }))

describe('the report', () => {
  const growing = (of: readonly Sample[]): string[] =>
    verdictsOf(of).flatMap(({ figure, owner, trend }) => (trend.isTrend ? [`${figure} of ${owner}`] : []))

  test('names the process whose heap grows by 300 KB a minute, and no other', () => {
    expect(growing(samples((minute) => 15 + minute * 0.3))).toEqual(['heap of worker 1'])
    expect(growing(samples(() => 15))).toEqual([])
  })

  test('is a table with the growth, what is allowed, and the verdict', () => {
    const table = tableOf(verdictsOf(samples((minute) => 15 + minute)))
    expect(table).toContain('| heap after collection (MB) | worker 1 | 35.5 | +19.0 | 3.6 | GROWS |')
    expect(table).toContain('| write-ahead log (MB) | store | 16.0 | 0.0 | 8.0 | flat |')
  })

  test('every figure may grow by something', () => {
    for (const { bound } of Object.values(FIGURES)) expect(Math.min(bound.floor, bound.share)).toBeGreaterThan(0)
  })
})

describe('the picture', () => {
  test('has a chart for each figure and a line for each process, and markup of names does no harm', () => {
    const line = (name: string) => ({ name, points: series(3, (minute) => minute) })
    const svg = plotOf('a < b', [
      { title: 'resident memory', unit: 'MB', lines: [line('worker 1'), line('serve')] },
      { title: 'connections', unit: '', lines: [line('store')] },
    ])
    expect(svg.match(/<polyline/g)).toHaveLength(3)
    expect(svg).toContain('resident memory, MB')
    expect(svg).toContain('a &lt; b')
    expect(svg).toContain('prefers-color-scheme:dark')
    expect(svg).not.toContain('NaN')
  })

  test('ends its axis at a round number', () => {
    expect([0, 0.3, 1, 130, 201, 999].map(roundUp)).toEqual([1, 0.5, 1, 200, 500, 1_000])
  })
})
