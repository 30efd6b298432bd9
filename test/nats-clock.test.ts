/** The time of a NATS server, as its answers tell it. */
import { expect, test } from 'vitest'
import { ServerClock } from '../src/store/nats/clock.ts'
import type { Connected } from '../src/store/nats/connection/connection.ts'
import type { Subjects } from '../src/store/nats/subjects.ts'

const serverAt = (shown: { ahead: number }): ServerClock => {
  const info = async (): Promise<{ ts: string }> => ({ ts: new Date(Date.now() + shown.ahead).toISOString() })
  return new ServerClock({ jsm: { streams: { info } } } as unknown as Connected, { kv: 'x' } as unknown as Subjects)
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
