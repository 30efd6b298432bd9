/** The time of a NATS server, as its answers tell it. */
import type { StreamInfo } from '@nats-io/jetstream'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ServerClock } from '../src/store/nats/clock.ts'
import type { Connected } from '../src/store/nats/connection/connection.ts'
import type { Subjects } from '../src/store/nats/subjects.ts'

/** A request takes `way` to the server, whose clock is `ahead`. The answer comes at once. */
const serverAt = (shown: { ahead: number; way?: number }): ServerClock => {
  const info = async (): Promise<StreamInfo> => {
    if (shown.way !== undefined) vi.advanceTimersByTime(shown.way)
    return { ts: new Date(Date.now() + shown.ahead).toISOString() } as unknown as StreamInfo
  }
  return new ServerClock({} as Connected, {} as Subjects, info)
}

test('goes back with a server whose clock was set back by minutes, and not for a second', async () => {
  const shown = { ahead: 0 }
  const clock = serverAt(shown)
  const before = (await clock.now()).at
  shown.ahead = -1_000
  await clock.ask()
  expect((await clock.now()).at).toBeGreaterThanOrEqual(before)
  shown.ahead = -600_000
  await clock.ask()
  expect(Math.abs((await clock.now()).at - (Date.now() - 600_000))).toBeLessThan(5_000)
})

test('what is read is never wrong by more than it says, also after a request that was held up', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const shown = { ahead: 0, way: 2 }
  const clock = serverAt(shown)
  let last = 0
  const check = async (): Promise<number> => {
    const { at, uncertainty } = await clock.now()
    expect(Math.abs(at - (Date.now() + shown.ahead))).toBeLessThanOrEqual(uncertainty)
    expect(at).toBeGreaterThanOrEqual(last)
    last = at
    return uncertainty
  }
  await check()
  shown.way = 3_000
  await clock.ask()
  expect(await check()).toBeGreaterThan(1_500)
  shown.way = 2
  await clock.ask()
  await check()
  // The server's time has come as far as what was shown.
  vi.advanceTimersByTime(1_500)
  expect(await check()).toBeLessThan(10)
  shown.ahead = -1_000
  await clock.ask()
  await check()
})

test('is asked again after the machine slept, while its monotonic clock stood still', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const clock = serverAt({ ahead: 0 })
  const sleep = (length: number): void => void vi.setSystemTime(Date.now() + length)
  await clock.now()
  sleep(20_000)
  expect(Math.abs((await clock.now()).at - Date.now())).toBeLessThanOrEqual(1)
})

test('is asked again if the machine slept between request and reply', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  let asked = 0
  const info = async (): Promise<StreamInfo> => {
    const ts = new Date().toISOString()
    if (asked++ === 0) vi.setSystemTime(Date.now() + 20_000)
    return { ts } as unknown as StreamInfo
  }
  const clock = new ServerClock({} as Connected, {} as Subjects, info)
  expect(Math.abs((await clock.now()).at - Date.now())).toBeLessThanOrEqual(1)
  expect(asked).toBe(2)
})
