/** The keeper's thread: renews leases with a client of its own, which is created for the first lease. */

import { leasedAmong } from '../kv/leased-among.ts'
import { KvStore } from '../kv/store.ts'
import type { Store } from '../store.ts'
import { keeperTold, keepOnThread } from '../threads/threaded-keeper.ts'
import { loadDriver } from './client.ts'
import type { KeeperPlace } from './keeper.ts'
import { S3KeyValue } from './key-value.ts'

const { place: keeperPlace, leaseTtl, every } = keeperTold<KeeperPlace>()
const { place, credentials, requestTimeout, etagsAreBare } = keeperPlace

const open = async (): Promise<Store> => {
  const kv = new S3KeyValue(await loadDriver(), place, {
    // A round that has not finished when the next one is due has failed.
    requestTimeout: Math.max(500, Math.min(every, requestTimeout)),
    ...(credentials === undefined ? null : { credentials }),
  })
  kv.etagsAreBare = etagsAreBare
  return new KvStore(kv, { capabilities: [], leaseTtl })
}

const opened = open()
opened.catch(() => {})

keepOnThread({
  renew: async (renewals) => (await opened).renew(renewals, null),
  leasedAmong: async (op, ids) => leasedAmong(await opened, op, ids),
  tasks: {
    now: async () => (await opened).now(),
    get: async (ids) => (await opened).get(ids),
    commit: async (changes) => (await opened).commit(changes),
  },
  // The store is opened with the thread, which starts with the first lease.
  prepare: () => {},
  close: () => void opened.then((store) => store.close()).catch(() => {}),
})
