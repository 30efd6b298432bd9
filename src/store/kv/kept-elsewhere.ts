/** Leases that a keeper's thread renews: what this thread remembers of such a task is out of date from then on. */
import type { HeldLease, Keeper, KeeperOptions } from '../store.ts'

/** `renewed` is told the id of each task that was renewed. */
export const keptElsewhere = (
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
  return {
    hold: (leases: readonly HeldLease[]) => {
      // Those whose lease has ended are still here: they are let go when there are many more than can be held.
      for (const { id, token } of leases) ids.set(token, id)
      for (const token of ids.keys()) {
        if (ids.size <= 2 * options.board.slots) break
        ids.delete(token)
      }
      keeper.hold(leases)
    },
    progress: (slot, progress) => keeper.progress(slot, progress),
    close: () => keeper.close(),
  }
}
