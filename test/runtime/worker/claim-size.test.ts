/** How much a worker asks for, and what it gives back first. */
import { describe, expect, it } from 'vitest'
import type { Attempt } from '../../../src/runtime/worker/attempt.ts'
import { claimSize } from '../../../src/runtime/worker/fetch/claim-size.ts'
import { Prefetched } from '../../../src/runtime/worker/fetch/prefetched.ts'
import { RecentRate } from '../../../src/runtime/worker/fetch/recent-rate.ts'
import { FakeClock } from '../../../src/testing/fake-clock.ts'

const load = { free: 0, held: 0, asked: 0, started: 0, room: 10_000 }

describe('a claim', () => {
  it('asks for one task per free slot where nothing was started lately', () => {
    expect(claimSize({ ...load, free: 10 })).toBe(10)
    expect(claimSize({ ...load, free: 10, held: 4 })).toBe(6)
    expect(claimSize({ ...load, free: 10, held: 4, asked: 5 })).toBe(1)
    expect(claimSize({ ...load, free: 10, held: 10 })).toBe(0)
  })

  it('fetches ahead what was started lately, less what is held and asked for', () => {
    expect(claimSize({ ...load, started: 400 })).toBe(400)
    expect(claimSize({ ...load, started: 400, held: 150 })).toBe(250)
    expect(claimSize({ ...load, started: 400, held: 50, asked: 100 })).toBe(250)
    expect(claimSize({ ...load, started: 400, held: 201 }), 'half is left').toBe(0)
  })

  it('never asks for more leases than can be kept, nor for more than a batch', () => {
    expect(claimSize({ ...load, started: 400, room: 30 })).toBe(30)
    expect(claimSize({ ...load, started: 400, room: 130, asked: 100 })).toBe(30)
    expect(claimSize({ ...load, started: 1_900 })).toBe(1_000)
  })
})

describe('tasks that wait for a slot', () => {
  it('go back from the end when there are more than a second can start: those that waited longest are next', async () => {
    const clock = new FakeClock()
    const starts = new RecentRate(() => clock.mono())
    const released: string[] = []
    const waiting = new Prefetched(clock, starts, (attempts) => released.push(...attempts.map(({ token }) => token)))
    waiting.add(['a', 'b', 'c', 'd'].map((token) => ({ token }) as Attempt))
    waiting.releaseSurplusLater()
    await clock.advance(900)
    starts.add(3)
    await clock.advance(100)
    expect(released).toEqual(['d'])
    expect(waiting.take(9).map(({ token }) => token)).toEqual(['a', 'b', 'c'])
    waiting.close()
  })
})
