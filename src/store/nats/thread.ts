/** The keeper's thread: renews leases over a connection of its own, which finds its way back by itself. */
import { hrtime } from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import { LeaseBoard } from '../lease-board.ts'
import { LeaseKeeper } from '../lease-keeper.ts'
import type { Store } from '../store.ts'
import type { FromKeeper, KeeperThreadData, ToKeeper } from './keeper.ts'
import { openNats } from './store.ts'

const { url, options, board, leaseTtl, every } = workerData as KeeperThreadData
const port = parentPort!
let opened: Promise<Store> | null = null

/** The store, opened once more if that failed. */
const store = (): Promise<Store> => {
  if (opened !== null) return opened
  const mine = openNats(url, options)
  opened = mine
  mine.catch(() => {
    opened = null
  })
  return mine
}

const keeper = new LeaseKeeper(
  {
    board: new LeaseBoard(board),
    leaseTtl,
    every,
    report: (results, renewedAt) => port.postMessage({ results, renewedAt } satisfies FromKeeper),
  },
  {
    renew: async (renewals) => (await store()).renew(renewals, null),
    mono: () => Number(hrtime.bigint()) / 1e6,
    after: (delay, tick) => {
      const timer = setTimeout(tick, delay)
      return () => clearTimeout(timer)
    },
  },
)

port.on('message', (message: ToKeeper) => {
  if (message.kind === 'hold') {
    // Now, so that the first round, a third of the lease from here, does not have to wait for it.
    store().catch(() => {})
    keeper.holdPacked(message.leases)
  } else if (message.kind === 'progress') keeper.progress(message.slot, message.progress)
  else {
    keeper.close()
    port.close()
    opened?.then((one) => one.close()).catch(() => {})
  }
})
