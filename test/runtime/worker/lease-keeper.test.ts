/** When leases are renewed: the keeper alone, with a clock that is told. */
import { beforeEach, describe, expect, test } from 'vitest'
import { HoldfastError } from '../../../src/core/errors.ts'
import { claim } from '../../../src/core/machine.ts'
import { applyChange, type Change, type TaskRecord } from '../../../src/core/task.ts'
import { type Committed, type Renewal, type Renewed, UNHELD } from '../../../src/store/store.ts'
import { LeaseBoard } from '../../../src/store/threads/lease-board.ts'
import { type KeeperHost, LeaseKeeper } from '../../../src/store/threads/lease-keeper.ts'
import { fresh } from '../../core/build.ts'

const TTL = 3_000
const EVERY = 1_000

let now: number
let timers: { at: number; tick: () => void }[]
let sent: { at: number; ids: string[] }[]
let board: LeaseBoard
let keeper: LeaseKeeper
let answer: (renewals: readonly Renewal[]) => Promise<readonly Renewed[]>
let reported: { slot: number; token: string }[]
/** What each claim has leased. */
let leased: Record<string, { id: string; token: string }[]>
/** Written by the keeper itself. */
let moved: { at: number; id: string; move: string }[]
let records: Record<string, TaskRecord>

beforeEach(() => {
  now = 0
  timers = []
  sent = []
  board = LeaseBoard.withSlots(10)
  answer = async (renewals) => renewals.map(() => 'held')
  reported = []
  leased = {}
  moved = []
  records = {}
  keeper = keeperWith({
    leasedBy: async (_, op) => leased[op] ?? [],
    tasks: {
      now: async () => ({ at: now, uncertainty: 0 }),
      get: async (ids) => ids.map((id) => records[id] ?? null),
      commit: async (changes) => {
        for (const { id, entry } of changes) moved.push({ at: now, id, move: entry.move })
        return changes.map(() => 'written')
      },
    },
  })
})

const keeperWith = (more: Partial<KeeperHost>): LeaseKeeper =>
  new LeaseKeeper(
    {
      workerId: 'worker',
      board,
      leaseTtl: TTL,
      every: EVERY,
      report: (results) => void reported.push(...results),
    },
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
      ...more,
    },
  )

/** Running, under the token that `wait` and claims use. */
const claimed = (id: string, token: string): { id: string; token: string } => {
  const task = { ...fresh(), id }
  records[id] = applyChange(task, claim(task, { token, workerId: 'worker', leaseTtl: TTL, now: task.availableAt }))
  return { id, token }
}

const wait = (slot: number): void => {
  board.beat(now)
  board.wait(slot)
  keeper.hold([{ slot, ...claimed(`task ${slot}`, `token ${slot}`) }], now)
}

const hold = (slot: number): void => {
  board.beat(now)
  board.wait(slot)
  board.start(slot, null)
  keeper.hold([{ slot, id: `task ${slot}`, token: `token ${slot}` }], now)
}

const until = async (end: number): Promise<void> => {
  for (;;) {
    timers.sort((a, b) => a.at - b.at)
    const [next] = timers
    if (next === undefined || next.at > end) break
    timers.shift()
    now = next.at
    next.tick()
    // What a round does one after the other.
    for (let i = 0; i < 20; i++) await Promise.resolve()
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

  test('renews what it hears of late a third of a lease after that began, and at once if that is over', async () => {
    now = 600
    board.wait(1)
    board.start(1, null)
    keeper.hold([{ slot: 1, id: 'task 1', token: 'token 1' }], 0)
    await until(1_999)
    expect(sent).toEqual([{ at: 1_000, ids: ['task 1'] }])
    board.wait(2)
    board.start(2, null)
    keeper.hold([{ slot: 2, id: 'task 2', token: 'token 2' }], 500)
    await until(1_999)
    expect(sent.at(-1)).toEqual({ at: 1_999, ids: ['task 1', 'task 2'] })
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

describe('what waits behind an event loop that is still', () => {
  test('is kept for one lease length, and then released by the keeper itself', async () => {
    wait(1)
    await until(10_000)
    expect(sent.map(({ at }) => at)).toEqual([1_000, 2_000])
    expect(moved).toEqual([{ at: 3_000, id: 'task 1', move: 'release' }])
    expect(board.start(1, null)).toBe(false)
  })

  test('is kept for as long as the event loop shows that it is alive', async () => {
    wait(1)
    for (let at = 1_000; at <= 9_000; at += 1_000) {
      await until(at - 1)
      board.beat(now)
    }
    expect(sent.length).toBe(8)
    expect(moved).toEqual([])
    expect(board.start(1, null)).toBe(true)
  })

  test('is not released once it has started', async () => {
    wait(1)
    board.start(1, null)
    await until(10_000)
    expect(moved).toEqual([])
    expect(sent.length).toBe(10)
  })

  test('is tried again when the store could not be reached', async () => {
    let isDown = true
    const commit = async (changes: readonly Change[]): Promise<Committed[]> => {
      if (isDown) throw new HoldfastError('STORE_UNAVAILABLE')
      return changes.map(({ id, entry }) => {
        moved.push({ at: now, id, move: entry.move })
        return 'written'
      })
    }
    keeper = keeperWith({
      tasks: {
        now: async () => ({ at: now, uncertainty: 0 }),
        get: async (ids) => ids.map((id) => records[id]!),
        commit,
      },
    })
    wait(1)
    await until(4_500)
    isDown = false
    await until(10_000)
    expect(moved).toEqual([{ at: 5_000, id: 'task 1', move: 'release' }])
  })

  test('is let go after two lease lengths where nothing can be released', async () => {
    keeper = keeperWith({})
    wait(1)
    await until(10_000)
    expect(sent.map(({ at }) => at)).toEqual([1_000, 2_000, 3_000, 4_000, 5_000])
  })
})

describe('a claim whose reply was not seen', () => {
  test("has its leases kept, and reported as nobody's, until it is", async () => {
    board.beat(now)
    const ticket = board.beginClaim()!
    keeper.claiming('op', ticket, now)
    leased['op'] = [claimed('task', 'op.1')]
    await until(2_500)
    expect(sent.map(({ at }) => at)).toEqual([1_000, 2_000])
    expect(reported).toContainEqual({ slot: UNHELD, token: 'op.1', renewed: 'held' })
    expect(board.endClaim(ticket)).toBe(true)
    await until(10_000)
    expect(sent.length).toBe(2)
  })

  test('is released after one lease length, and the event loop is told', async () => {
    const ticket = board.beginClaim()!
    keeper.claiming('op', ticket, now)
    leased['op'] = [claimed('task', 'op.1')]
    await until(10_000)
    expect(moved).toEqual([{ at: 3_000, id: 'task', move: 'release' }])
    expect(board.endClaim(ticket)).toBe(false)
  })

  test('costs nothing when it is answered soon, however many there are', async () => {
    let asked = 0
    keeper = keeperWith({
      leasedBy: async () => {
        asked++
        return []
      },
    })
    for (let at = 0; at < 20_000; at += 10) {
      await until(at)
      const ticket = board.beginClaim()!
      keeper.claiming('op', ticket, now)
      expect(board.endClaim(ticket)).toBe(true)
    }
    expect(asked).toBe(0)
  })
})

describe('a run that has settled', () => {
  test('is kept past its timeout until its end is written', async () => {
    board.beat(now)
    board.wait(1)
    board.start(1, 1_500)
    keeper.hold([{ slot: 1, id: 'task 1', token: 'token 1' }], now)
    await until(1_200)
    board.settle(1)
    await until(7_500)
    expect(sent.length).toBe(7)
    board.free(1)
    await until(20_000)
    expect(sent.length).toBe(7)
  })

  test('is let go when the event loop does not come back within a minute', async () => {
    board.beat(now)
    board.wait(1)
    board.start(1, 1_500)
    keeper.hold([{ slot: 1, id: 'task 1', token: 'token 1' }], now)
    board.settle(1)
    await until(100_000)
    expect(sent.at(-1)!.at).toBe(59_000)
  })

  test('is not kept past its timeout while it has not settled', async () => {
    board.beat(now)
    board.wait(1)
    board.start(1, 1_500)
    keeper.hold([{ slot: 1, id: 'task 1', token: 'token 1' }], now)
    await until(7_500)
    expect(sent.map(({ at }) => at)).toEqual([1_000])
  })
})
