/** The keeper's thread: renews leases with a client of its own, which is made when the first lease is held. */
import { hrtime } from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import { KvStore } from '../kv/store.ts'
import { LeaseBoard } from '../lease-board.ts'
import { LeaseKeeper } from '../lease-keeper.ts'
import type { Store } from '../store.ts'
import { loadDriver } from './client.ts'
import type { FromKeeper, KeeperThreadData, ToKeeper } from './keeper.ts'
import { S3KeyValue } from './key-value.ts'

const { place, credentials, requestTimeout, etagsAreBare, board, leaseTtl, every } = workerData as KeeperThreadData
const port = parentPort!

const open = async (): Promise<Store> => {
  const kv = new S3KeyValue(await loadDriver(), place, {
    // A round that is not over when the next one is due has failed.
    requestTimeout: Math.max(500, Math.min(every, requestTimeout)),
    ...(credentials === undefined ? null : { credentials }),
  })
  kv.etagsAreBare = etagsAreBare
  return new KvStore(kv, { capabilities: [], leaseTtl })
}

const opened = open()
opened.catch(() => {})

const keeper = new LeaseKeeper(
  {
    board: new LeaseBoard(board),
    leaseTtl,
    every,
    report: (results, renewedAt) => port.postMessage({ results, renewedAt } satisfies FromKeeper),
  },
  {
    renew: async (renewals) => (await opened).renew(renewals, null),
    mono: () => Number(hrtime.bigint()) / 1e6,
    after: (delay, tick) => {
      const timer = setTimeout(tick, delay)
      return () => clearTimeout(timer)
    },
  },
)

port.on('message', (message: ToKeeper) => {
  if (message.kind === 'hold') keeper.holdPacked(message.leases)
  else if (message.kind === 'progress') keeper.progress(message.slot, message.progress)
  else {
    keeper.close()
    port.close()
    opened.then((store) => store.close()).catch(() => {})
  }
})
