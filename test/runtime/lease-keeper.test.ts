/** When leases are renewed: the keeper alone, with a clock that is told. */
import { beforeEach, describe, expect, test } from 'vitest'
import { LeaseBoard } from '../../src/store/lease-board.ts'
import { LeaseKeeper } from '../../src/store/lease-keeper.ts'
import type { Renewal, Renewed } from '../../src/store/store.ts'

const TTL = 3_000
const EVERY = 1_000

let now: number
let timers: { at: number; tick: () => void }[]
let sent: { at: number; ids: string[] }[]
let board: LeaseBoard
let keeper: LeaseKeeper
let answer: (renewals: readonly Renewal[]) => Promise<readonly Renewed[]>

beforeEach(() => {
  now = 0
  timers = []
  sent = []
  board = LeaseBoard.withSlots(10)
  answer = async (renewals) => renewals.map(() => 'held')
  keeper = new LeaseKeeper(
    { board, leaseTtl: TTL, every: EVERY, report: () => {} },
    {
      mono: () => now,
      after: (delay, tick) => {
        const timer = { at: now + delay, tick }
        timers.push(timer)
        return () => void timers.splice(timers.indexOf(timer), 1)
      },
      renew: (renewals) => {
        sent.push({ at: now, ids: renewals.map(({ id }) => id) })
        return answer(renewals)
      },
    },
  )
})

const hold = (slot: number): void => {
  board.beat(now)
  board.wait(slot)
  board.start(slot, null)
  keeper.hold([{ slot, id: `task ${slot}`, token: `token ${slot}` }])
}

const until = async (end: number): Promise<void> => {
  for (;;) {
    timers.sort((a, b) => a.at - b.at)
    const [next] = timers
    if (next === undefined || next.at > end) break
    timers.shift()
    now = next.at
    next.tick()
    await Promise.resolve()
  }
  now = end
}

describe('a keeper', () => {
  test('renews a lease every round until it is free', async () => {
    hold(1)
    await until(3_500)
    board.free(1)
    await until(10_000)
    expect(sent.map(({ at }) => at)).toEqual([1_000, 2_000, 3_000])
  })

  test('leaves a young lease alone, and renews it long before it lapses', async () => {
    hold(1)
    await until(501)
    hold(2)
    await until(2_000)
    expect(sent).toEqual([
      { at: 1_000, ids: ['task 1'] },
      { at: 2_000, ids: ['task 1', 'task 2'] },
    ])
  })

  test.each([0, 130, 499, 500, 501, 870, 999])(
    'given %i ms after a round, a lease is renewed before half of it is over',
    async (late) => {
      hold(0)
      await until(EVERY + late)
      hold(1)
      await until(EVERY + late + TTL / 2)
      expect(sent.flatMap(({ ids }) => ids)).toContain('task 1')
    },
  )

  test('progress is written soon, however young the lease is', async () => {
    hold(1)
    await until(900)
    hold(2)
    keeper.progress(2, '"half"')
    await until(1_000)
    expect(sent.at(-1)).toEqual({ at: 1_000, ids: ['task 1', 'task 2'] })
  })

  test('tasks that end within half a round are never renewed, however many there are', async () => {
    for (let at = 0; at < 20_000; at += 100) {
      await until(at)
      const slot = (at / 100) % 4
      board.free(slot)
      hold(slot)
    }
    expect(sent).toEqual([])
  })
})
