/** The keeper's thread: renews leases over a connection of its own, which reconnects by itself. */

import { leasedAmong } from '../kv/leased-among.ts'
import type { Store } from '../store.ts'
import { keeperTold, keepOnThread } from '../threads/threaded-keeper.ts'
import type { KeeperPlace } from './keeper.ts'
import { openNats } from './store.ts'

const { url, options } = keeperTold<KeeperPlace>().place
let opened: Promise<Store> | null = null

/** Opens the store again if the last attempt failed. */
const store = (): Promise<Store> => {
  if (opened !== null) return opened
  const mine = openNats(url, options)
  opened = mine
  mine.catch(() => {
    opened = null
  })
  return mine
}

keepOnThread({
  renew: async (renewals) => (await store()).renew(renewals, null),
  leasedAmong: async (op, ids) => leasedAmong(await store(), op, ids),
  tasks: {
    now: async () => (await store()).now(),
    get: async (ids) => (await store()).get(ids),
    commit: async (changes) => (await store()).commit(changes),
  },
  prepare: () => void store().catch(() => {}),
  close: () => void opened?.then((one) => one.close()).catch(() => {}),
})
