import { describe, expect, it } from 'vitest'
import { FakeClock } from '../../src/testing/fake-clock.ts'

describe('the fake clock', () => {
  it('stands still until it is moved, and both of its faces move together', async () => {
    const clock = new FakeClock({ now: 1_000 })
    expect([clock.wall(), clock.mono()]).toEqual([1_000, 0])
    await clock.advance(250)
    expect([clock.wall(), clock.mono()]).toEqual([1_250, 250])
    await clock.advanceTo(5_000)
    expect(clock.wall()).toBe(5_000)
    await expect(clock.advance(-1)).rejects.toThrow(RangeError)
    await expect(clock.advanceTo(4_000)).rejects.toThrow(RangeError)
  })

  it('fires timers at their own instant, in order, each once; also those set meanwhile', async () => {
    const clock = new FakeClock()
    const fired: string[] = []
    clock.after(20, () => fired.push(`b at ${clock.mono()}`))
    clock.after(10, () => {
      fired.push(`a at ${clock.mono()}`)
      clock.after(5, () => fired.push(`inner at ${clock.mono()}`))
      clock.after(100, () => fired.push('too late'))
    })
    clock.after(20, () => fired.push(`c at ${clock.mono()}`))
    clock.after(15, () => fired.push('cancelled'))()
    await clock.advance(20)
    expect(fired).toEqual(['a at 10', 'inner at 15', 'b at 20', 'c at 20'])
    expect(clock.pendingTimers).toBe(1)
  })

  it('lets promises and turns of the event loop come to rest between two timers', async () => {
    const clock = new FakeClock()
    const order: string[] = []
    const busy = async (name: string): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        await new Promise((done) => setImmediate(done))
        clock.mono()
      }
      order.push(`${name} done`)
    }
    clock.after(1, () => void busy('first'))
    clock.after(2, () => void order.push('second'))
    await clock.advance(2)
    expect(order).toEqual(['first done', 'second'])
  })

  it('says so when something never settles', async () => {
    const clock = new FakeClock()
    let isOver = false
    const spin = (): void => {
      clock.mono()
      if (!isOver) setImmediate(spin)
    }
    spin()
    await expect(clock.settle()).rejects.toThrow(/never settles/)
    isOver = true
  })

  it('rolls the same dice for the same seed', () => {
    const roll = (seed: number): number[] => Array.from({ length: 5 }, new FakeClock({ seed }).random)
    expect(roll(7)).toEqual(roll(7))
    expect(roll(7)).not.toEqual(roll(8))
    const many = Array.from({ length: 10_000 }, new FakeClock({ seed: 3 }).random)
    expect(many.every((value) => value >= 0 && value < 1)).toBe(true)
    expect(many.reduce((a, b) => a + b) / many.length).toBeCloseTo(0.5, 1)
  })
})
