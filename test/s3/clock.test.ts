/** The server's time from the Date headers of its replies. */
import { expect, onTestFinished, test } from 'vitest'
import { ServerClock } from '../../src/store/s3/clock.ts'
import { openS3 } from '../../src/store/s3/store.ts'
import { startStub } from './stub-server.ts'

const START = Date.UTC(2026, 0, 28, 12)
const dateAt = (instant: number): string => new Date(instant).toUTCString()

/** A server whose clock is `ahead`, asked at these monotonic instants. A round trip takes `way`. */
const asked = (ahead: number, instants: readonly number[], way = 4): ServerClock => {
  const clock = new ServerClock()
  for (const at of instants) clock.observe(dateAt(START + ahead + at + way / 2), at, at + way)
  return clock
}

test('[U14] one answer tells the second, many tell it to a few milliseconds', () => {
  const once = asked(0, [400]).read(404)
  expect(once.uncertainty).toBeGreaterThan(400)
  expect(Math.abs(once.at - (START + 404))).toBeLessThanOrEqual(once.uncertainty)
  const instants = Array.from({ length: 200 }, (_, n) => n * 37)
  const clock = asked(123, instants)
  const { at, uncertainty } = clock.read(7_400)
  expect(uncertainty).toBeLessThan(40)
  expect(Math.abs(at - (START + 123 + 7_400))).toBeLessThanOrEqual(uncertainty)
})

test('what is read is never wrong by more than it says, and never goes back', () => {
  const clock = new ServerClock()
  let last = 0
  for (let at = 0; at < 60_000; at += 733) {
    const way = 5 + (at % 91)
    clock.observe(dateAt(START + at + (at % 7) * 0.1 * way), at, at + way)
    const shown = clock.read(at + way)
    expect(Math.abs(shown.at - (START + at + way))).toBeLessThanOrEqual(shown.uncertainty + 1)
    expect(shown.at).toBeGreaterThanOrEqual(last)
    last = shown.at
  }
})

test('a clock that was set is followed forwards at once, and backwards without going back', () => {
  const clock = asked(0, [0, 300, 600, 900, 1_200])
  const before = clock.read(1_204).at
  clock.observe(dateAt(START + 3_600_000 + 1_500), 1_498, 1_502)
  expect(clock.read(1_502).at).toBeGreaterThan(before + 3_500_000)
  clock.observe(dateAt(START + 2_000), 1_998, 2_002)
  const after = clock.read(2_002)
  expect(after.at).toBeGreaterThan(before + 3_500_000)
  expect(after.uncertainty).toBeGreaterThan(3_500_000)
})

test('an answer without a date, or with nonsense for one, says nothing', () => {
  const clock = asked(0, [0])
  const before = clock.read(10)
  clock.observe(undefined, 10, 12)
  clock.observe('yesterday', 10, 12)
  expect(clock.read(10)).toEqual(before)
})

test('replies that were held up tell little, and one quick reply after them tells the second', () => {
  const clock = asked(0, [0], 6_000)
  expect(clock.isVague(6_000)).toBe(true)
  clock.observe(dateAt(START + 6_500), 6_498, 6_502)
  expect(clock.isVague(6_502)).toBe(false)
  expect(clock.read(6_502).uncertainty).toBeLessThan(1_000)
})

test('[U14] asking for the time writes nothing', async () => {
  const stub = await startStub()
  onTestFinished(() => stub.close())
  const address = `s3://bucket/jobs?endpoint=${stub.endpoint}`
  const store = await openS3(address, { credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, create: true })
  onTestFinished(() => store.close())
  stub.requests.length = 0
  const { at } = await store.now()
  expect(Math.abs(at - Date.now())).toBeLessThan(2_000)
  expect(stub.requests).toEqual([])
})
