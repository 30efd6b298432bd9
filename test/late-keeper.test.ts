/** A keeper's thread that hears of a lease late, because it has just started or had to wait for the processor: on every store that has one. */
import { describe, expect, test } from 'vitest'
import { connect, silentLogger } from '../src/index.ts'
import { systemClock } from '../src/runtime/clock.ts'
import { type KeeperReport, type Store, UNHELD } from '../src/store/store.ts'
import { LeaseBoard } from '../src/store/threads/lease-board.ts'
import { want } from '../src/testing/conformance/build.ts'
import { stores } from './stores.ts'

const TTL = 90_000
/** A keeper that counts from when it hears of a lease would renew it this much later. */
const EVERY = TTL / 3
/** The keeper hears of a lease as if it had been away for so long. */
const LATE = EVERY + 1_000

/** A lease that began a while ago. */
const begin = async (store: Store) => {
  const client = await connect(store, { logger: silentLogger })
  const { id } = await client.submit('work', null)
  const board = LeaseBoard.withSlots(1)
  const reports: KeeperReport[] = []
  const keeper = store.keeper!({
    workerId: 'worker-1',
    board,
    leaseTtl: TTL,
    every: EVERY,
    held: () => [],
    report: (results) => void reports.push(...results),
  })
  const claim = async (op: string): Promise<string> => {
    const { leased } = await store.claim(want({ op, leaseTtl: TTL, now: null }))
    return leased[0]!.lease!.token
  }
  const since = systemClock.mono() - LATE
  return { client, id, board, keeper, reports, claim, since }
}

for (const { name, open } of stores) {
  if (typeof open === 'string') {
    test(`${name}, a late keeper`, (context) => context.skip(`${name} could not be started: ${open}`))
    continue
  }
  describe(`${name}, a late keeper`, () => {
    test('renews a lease at once when a third of it is over', async (context) => {
      const store = await open()
      if (store.keeper === undefined) context.skip(`${name} has no keeper of its own`)
      const { client, id, board, keeper, reports, claim, since } = await begin(store)
      const token = await claim('op')
      board.beat(systemClock.mono())
      board.wait(0)
      board.start(0, null)
      keeper.hold([{ slot: 0, id, token }], since)
      await expect.poll(() => reports, { timeout: EVERY / 2 }).toEqual([{ slot: 0, token, renewed: 'held' }])
      keeper.close()
      await client.close()
    })

    test('renews what a claim has leased whose reply was not seen', async (context) => {
      const store = await open()
      if (store.keeper === undefined) context.skip(`${name} has no keeper of its own`)
      const { client, board, keeper, reports, claim, since } = await begin(store)
      if (keeper.claiming === undefined) context.skip(`${name} renews from the reply on`)
      board.beat(systemClock.mono())
      keeper.claiming!('op', board.beginClaim()!, since)
      const token = await claim('op')
      await expect.poll(() => reports, { timeout: EVERY / 2 }).toContainEqual({ slot: UNHELD, token, renewed: 'held' })
      keeper.close()
      await client.close()
    })
  })
}
