/** SPEC 4: when recurring work is due. Slots on both sides of every change of the clocks, and what is made up for. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isHoldfastError } from '../../../src/core/errors.ts'
import {
  type CatchUp,
  checkCron,
  checkTimezone,
  dueSlots,
  MISSED_AFTER,
  MOST_CAUGHT_UP,
  type Recurrence,
  slotAfter,
  slotsAfter,
} from '../../../src/core/schedules/recurrence.ts'
import { parseTiming } from '../../../src/core/schedules/schedule.ts'

const at = (iso: string): number => Date.parse(iso)
const iso = (instant: number | null): string | null => (instant === null ? null : new Date(instant).toISOString())
const cron = (expression: string, timezone = 'UTC'): Recurrence => ({ cron: checkCron(expression), timezone })
const next = (recurrence: Recurrence, after: string, count = 1): (string | null)[] =>
  slotsAfter(recurrence, at(after), count).map(iso)

const refusal = (call: () => unknown): { code?: string; field?: unknown; message?: string } => {
  try {
    call()
  } catch (error) {
    if (isHoldfastError(error)) return { code: error.code, field: error.details['field'], message: error.message }
    throw error
  }
  return {}
}

describe('an expression', () => {
  it.each([
    '* * * * *',
    '*/5 * * * * *',
    '0 9 * * MON-FRI',
    '0 0 L * *',
    '0 0 29 2 *',
    '0 0 * 2 1#5',
    '@daily',
    ' 0  0 1 1 * ',
  ])('%s is taken', (expression) => {
    expect(checkCron(expression)).toBe(expression.trim().replaceAll(/\s+/g, ' '))
  })

  const impossible: readonly string[] = [
    '0 0 30 2 *',
    '0 0 31 4 *',
    '0 0 31 2,4,6,9,11 *',
    '0 0 0 30 2 *',
    '*/0 * * * *',
    '* * * *',
    '* * * * * * *',
    '60 * * * *',
    '0 24 * * *',
    'a b c d e',
    '',
    '@reboot',
    '2026-01-28T17:00:00',
    `${'1,'.repeat(5_000)}1 * * * *`,
    '* '.repeat(5_000),
  ]

  it.each(impossible)('%s is refused with the field named', (expression) => {
    expect(refusal(() => checkCron(expression))).toMatchObject({ code: 'INVALID_OPTION', field: 'cron' })
  })

  it('that is impossible is refused in under 5 ms', () => {
    for (const expression of impossible) {
      // The best of a few: the machine may be busy with something else, and code is slow when it is new.
      const took = Array.from({ length: 10 }, () => {
        const begun = performance.now()
        refusal(() => checkCron(expression))
        return performance.now() - begun
      })
      expect(Math.min(...took), expression.slice(0, 40)).toBeLessThan(5)
    }
  })

  it('needs a timezone that there is', () => {
    for (const timezone of ['UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires'])
      expect(checkTimezone(timezone)).toBe(timezone)
    for (const timezone of ['Nowhere/At_All', '', '+02:00', 7 as unknown as string])
      expect(refusal(() => checkTimezone(timezone))).toMatchObject({ code: 'INVALID_OPTION', field: 'timezone' })
  })

  it('[M04] says whether a rate or a delay is meant, and never both', () => {
    expect(parseTiming({ every: '5m' })).toMatchObject({ every: 300_000, mode: 'fixed-rate', cron: null })
    expect(parseTiming({ every: '5m', mode: 'fixed-delay' })).toMatchObject({ mode: 'fixed-delay' })
    expect(parseTiming({ cron: '0 0 * * *' })).toMatchObject({ timezone: 'UTC', every: null, mode: null })
    expect(refusal(() => parseTiming({}))).toMatchObject({ code: 'INVALID_OPTION', field: 'cron' })
    expect(refusal(() => parseTiming({ cron: '0 0 * * *', every: '5m' }))).toMatchObject({ field: 'cron' })
    expect(refusal(() => parseTiming({ cron: '0 0 * * *', mode: 'fixed-rate' }))).toMatchObject({ field: 'mode' })
    expect(refusal(() => parseTiming({ every: '5m', timezone: 'UTC' }))).toMatchObject({ field: 'timezone' })
    expect(refusal(() => parseTiming({ every: '5m', mode: 'often' as never }))).toMatchObject({ field: 'mode' })
    expect(refusal(() => parseTiming({ every: '9ms' }))).toMatchObject({ code: 'INVALID_OPTION', field: 'every' })
    expect(refusal(() => parseTiming({ every: 0 }))).toMatchObject({ code: 'INVALID_OPTION', field: 'every' })
    expect(refusal(() => parseTiming({ every: '5' }))).toMatchObject({ code: 'INVALID_DURATION', field: 'every' })
  })
})

describe('the change of the clocks', () => {
  /** The night, a local time that does not exist in it, and the instant at which it fires: right after the gap. */
  it.each([
    ['America/New_York', '2026-03-08T05:00:00Z', '30 2 * * *', '2026-03-08T07:00:00.000Z'],
    ['Europe/Berlin', '2026-03-28T23:00:00Z', '30 2 * * *', '2026-03-29T01:00:00.000Z'],
    ['Australia/Lord_Howe', '2026-10-03T13:30:00Z', '15 2 * * *', '2026-10-03T15:30:00.000Z'],
    ['America/Santiago', '2026-09-06T03:00:00Z', '30 0 * * *', '2026-09-06T04:00:00.000Z'],
    ['Africa/Cairo', '2026-04-23T21:00:00Z', '30 0 * * *', '2026-04-23T22:00:00.000Z'],
  ])('forward in %s: a time in the gap fires once, at the end of the gap', (zone, night, expression, fires) => {
    const recurrence = cron(expression, zone)
    expect(next(recurrence, night)).toEqual([fires])
    const dayLater = slotAfter(recurrence, at(fires))! - at(fires)
    expect(dayLater).toBeGreaterThan(23 * 3_600_000)
    expect(dayLater).toBeLessThanOrEqual(24 * 3_600_000)
  })

  /** The night, and a local time that comes twice in it: it fires the first time. */
  it.each([
    ['America/New_York', '2026-11-01T04:00:00Z', '30 1 * * *', '2026-11-01T05:30:00.000Z'],
    ['Europe/Berlin', '2026-10-24T22:00:00Z', '30 2 * * *', '2026-10-25T00:30:00.000Z'],
    ['Australia/Lord_Howe', '2026-04-04T13:00:00Z', '45 1 * * *', '2026-04-04T14:45:00.000Z'],
    ['America/Santiago', '2026-04-05T02:00:00Z', '30 23 * * *', '2026-04-05T02:30:00.000Z'],
    ['Africa/Cairo', '2026-10-29T20:00:00Z', '30 23 * * *', '2026-10-29T20:30:00.000Z'],
  ])('back in %s: a time that comes twice fires once', (zone, night, expression, fires) => {
    const recurrence = cron(expression, zone)
    expect(next(recurrence, night)).toEqual([fires])
    expect(slotAfter(recurrence, at(fires))! - at(fires)).toBeGreaterThan(23 * 3_600_000)
  })

  it.each(['America/New_York', 'Europe/Berlin', 'Australia/Lord_Howe', 'America/Santiago', 'Africa/Cairo'])(
    'every half hour goes on evenly through both nights in %s, and a daily time comes once a day',
    (zone) => {
      const halves = slotsAfter(cron('*/30 * * * *', zone), at('2026-01-01T00:00:00Z'), 330 * 48)
      expect(new Set(halves.slice(1).map((slot, i) => slot - halves[i]!))).toEqual(new Set([1_800_000]))
      for (const expression of ['30 0 * * *', '30 1 * * *', '30 2 * * *', '30 23 * * *']) {
        const days = slotsAfter(cron(expression, zone), at('2026-01-01T12:00:00Z'), 365)
        const local = new Intl.DateTimeFormat('en-CA', { timeZone: zone })
        expect(new Set(days.map((slot) => local.format(slot))).size).toBe(365)
      }
    },
  )
})

describe('slots by the calendar', () => {
  it('a leap day comes every four years, and not in 2100', () => {
    expect(next(cron('0 0 29 2 *'), '2026-01-01T00:00:00Z', 2)).toEqual([
      '2028-02-29T00:00:00.000Z',
      '2032-02-29T00:00:00.000Z',
    ])
    expect(next(cron('0 0 29 2 *'), '2096-03-01T00:00:00Z')).toEqual(['2104-02-29T00:00:00.000Z'])
  })

  it('the year ends in its own timezone', () => {
    expect(next(cron('59 59 23 31 12 *'), '2026-12-31T23:59:58Z', 2)).toEqual([
      '2026-12-31T23:59:59.000Z',
      '2027-12-31T23:59:59.000Z',
    ])
    expect(next(cron('0 0 1 1 *', 'Pacific/Kiritimati'), '2026-12-01T00:00:00Z')).toEqual(['2026-12-31T10:00:00.000Z'])
    expect(next(cron('0 0 1 1 *', 'Pacific/Pago_Pago'), '2026-12-01T00:00:00Z')).toEqual(['2027-01-01T11:00:00.000Z'])
  })

  it('the next slot is after the instant, also within a second of it', () => {
    const minutely = cron('* * * * *')
    expect(next(minutely, '2026-01-01T00:00:59.999Z')).toEqual(['2026-01-01T00:01:00.000Z'])
    expect(next(minutely, '2026-01-01T00:01:00.000Z')).toEqual(['2026-01-01T00:02:00.000Z'])
    expect(next(minutely, '2026-01-01T00:01:00.001Z')).toEqual(['2026-01-01T00:02:00.000Z'])
  })
})

describe('[M04] a fixed rate', () => {
  it('does not drift over 10,000 slots, however late each one is looked at', () => {
    const [origin, every] = [at('2026-01-28T12:00:00.123Z'), 333]
    const recurrence = { every, origin }
    let cursor = origin
    for (let k = 1; k <= 10_000; k++) {
      const lateness = (k * 7_919) % every
      const { fire } = dueSlots(recurrence, 'skip', cursor, origin + k * every + lateness)
      expect(fire).toEqual([origin + k * every])
      cursor = fire[0]!
    }
  })
})

const EXPRESSIONS = ['* * * * * *', '*/7 * * * *', '30 2 * * *', '0 0 29 2 *', '15 4 1 * *', '0 */6 * * 1-5']
const ZONES = ['UTC', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Cairo', 'Asia/Kathmandu']
const instants = fc.integer({ min: at('2024-01-01T00:00:00Z'), max: at('2030-01-01T00:00:00Z') })
const recurrences: fc.Arbitrary<Recurrence> = fc.oneof(
  fc.record({ cron: fc.constantFrom(...EXPRESSIONS), timezone: fc.constantFrom(...ZONES) }),
  fc.record({ every: fc.integer({ min: 10, max: 90_000_000 }), origin: instants }),
)

describe('[M03] what is due', () => {
  const spans = fc.oneof(
    fc.integer({ min: 0, max: 59_000 }),
    fc.integer({ min: 0, max: 3_600_000 }),
    fc.integer({ min: 0, max: 40_000_000 }),
  )

  it('is always a slot that has come after the cursor, in order, and never more than 1,000', () => {
    fc.assert(
      fc.property(
        recurrences,
        instants,
        spans,
        fc.constantFrom<CatchUp>('skip', 'last', 'all'),
        (recurrence, cursor, span, catchUp) => {
          const now = cursor + span
          const { fire, newest } = dueSlots(recurrence, catchUp, cursor, now)
          const first = slotAfter(recurrence, cursor)
          expect(newest === null).toBe(first === null || first > now)
          expect(fire.length).toBeLessThanOrEqual(MOST_CAUGHT_UP)
          for (const [i, slot] of fire.entries()) {
            expect(slot).toBeGreaterThan(i === 0 ? cursor : fire[i - 1]!)
            expect(slot).toBeLessThanOrEqual(now)
            expect(slotAfter(recurrence, slot - 1)).toBe(slot)
          }
          // Nothing that has come is left after the newest, so nothing can fire twice.
          if (newest !== null) expect(slotAfter(recurrence, newest) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(now)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('is the newest slot alone while it is under 60 s late, and everything only where all is caught up', () => {
    fc.assert(
      fc.property(
        recurrences.filter((one) => !('every' in one) || one.every >= 100),
        instants,
        fc.integer({ min: 0, max: MISSED_AFTER - 1 }),
        (recurrence, cursor, span) => {
          const all: number[] = []
          let slot = slotAfter(recurrence, cursor)
          while (slot !== null && slot <= cursor + span) {
            all.push(slot)
            slot = slotAfter(recurrence, slot)
          }
          const fired = (catchUp: CatchUp) => dueSlots(recurrence, catchUp, cursor, cursor + span).fire
          expect(fired('all')).toEqual(all)
          expect(fired('skip')).toEqual(all.slice(-1))
          expect(fired('last')).toEqual(all.slice(-1))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('after a day of downtime is nothing, the newest, or no more than 1,000', () => {
    const hourly = cron('0 * * * *')
    const [cursor, now] = [at('2026-01-28T12:00:00Z'), at('2026-01-29T12:30:00Z')]
    expect(dueSlots(hourly, 'skip', cursor, now)).toEqual({ fire: [], newest: at('2026-01-29T12:00:00Z') })
    expect(dueSlots(hourly, 'last', cursor, now).fire).toEqual([at('2026-01-29T12:00:00Z')])
    expect(dueSlots(hourly, 'all', cursor, now).fire).toHaveLength(24)
    for (const recurrence of [cron('* * * * *'), { every: 60_000, origin: cursor }]) {
      const { fire, newest } = dueSlots(recurrence, 'all', cursor, now)
      expect(fire).toHaveLength(1_000)
      expect([fire[0], fire.at(-1), newest]).toEqual([now - 999 * 60_000, now, now])
    }
  })

  it('is one that is under 60 s late, when others were missed', () => {
    const cursor = at('2026-01-28T12:00:00Z')
    for (const recurrence of [cron('*/10 * * * * *'), { every: 10_000, origin: cursor }]) {
      const now = at('2026-01-29T12:00:03Z')
      expect(dueSlots(recurrence, 'skip', cursor, now).fire).toEqual([at('2026-01-29T12:00:00Z')])
    }
    const hourly = cron('0 * * * *')
    expect(dueSlots(hourly, 'skip', cursor, at('2026-01-28T15:00:59.999Z')).fire).toEqual([at('2026-01-28T15:00:00Z')])
    expect(dueSlots(hourly, 'skip', cursor, at('2026-01-28T15:01:00.000Z')).fire).toEqual([])
  })
})
