/** Claims that wait: a worker elsewhere asks once and is answered when there is work, or when its patience ends. */
import type { ClaimNextOptions, Client, TaskLease } from '../index.ts'

/** What other processes submit is found by looking; what came through this one is known at once. */
const LOOK_EVERY = 500

export interface ClaimWish extends Omit<ClaimNextOptions, 'queue'> {
  readonly queues: readonly string[]
  readonly limit: number
  readonly patience: number
}

/** Empty when nothing came in time, or the caller has gone: then what was claimed is given back. */
export const claimSome = async (client: Client, wish: ClaimWish, signal: AbortSignal): Promise<TaskLease[]> => {
  const until = performance.now() + wish.patience
  for (;;) {
    const leases = await look(client, wish)
    if (signal.aborted) {
      await Promise.all(leases.map((lease) => lease.release()))
      return []
    }
    const left = until - performance.now()
    if (leases.length > 0 || left <= 0) return leases
    await change(client, wish.queues, Math.min(left, LOOK_EVERY), signal)
  }
}

const look = async (client: Client, { queues, limit, patience: _, ...options }: ClaimWish): Promise<TaskLease[]> => {
  const leases: TaskLease[] = []
  for (const queue of queues) {
    while (leases.length < limit) {
      const lease = await client.claimNext({ ...options, queue })
      if (lease === null) break
      leases.push(lease)
    }
  }
  return leases
}

/** Something became pending in one of the queues, or the time is over, or the caller has gone. */
const change = (client: Client, queues: readonly string[], longest: number, signal: AbortSignal): Promise<void> =>
  new Promise((done) => {
    const end = (): void => {
      clearTimeout(timer)
      stop()
      signal.removeEventListener('abort', end)
      done()
    }
    const stop = client.onMove(({ task }) => {
      if (task.status === 'pending' && queues.includes(task.queue)) end()
    })
    const timer = setTimeout(end, longest)
    signal.addEventListener('abort', end)
  })
