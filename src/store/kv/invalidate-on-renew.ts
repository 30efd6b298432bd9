/** Wraps a keeper that renews leases on another thread. The cached copy of a renewed task is out of date. */
import type { HeldLease, Keeper, KeeperOptions } from '../store.ts'

/** Calls `renewed` with the id of each task whose lease the keeper renewed. */
export const invalidateOnRenew = (
  start: (options: KeeperOptions) => Keeper,
  options: KeeperOptions,
  renewed: (id: string) => void,
): Keeper => {
  const ids = new Map<string, string>()
  const keeper = start({
    ...options,
    report: (results, renewedAt) => {
      for (const { token, renewed: outcome } of results) {
        const id = ids.get(token)
        if (id !== undefined) renewed(id)
        if (outcome === 'lost') ids.delete(token)
      }
      options.report(results, renewedAt)
    },
  })
  const { claiming, leasing } = keeper
  return {
    ...(claiming && { claiming }),
    ...(leasing && { leasing }),
    hold: (leases: readonly HeldLease[], since) => {
      // Leases that have ended stay in the map. The oldest are dropped once there are more than can be held.
      for (const { id, token } of leases) ids.set(token, id)
      for (const token of ids.keys()) {
        if (ids.size <= 2 * options.board.slots) break
        ids.delete(token)
      }
      keeper.hold(leases, since)
    },
    progress: (slot, progress) => keeper.progress(slot, progress),
    reportNow: () => keeper.reportNow?.(),
    close: () => keeper.close(),
  }
}
