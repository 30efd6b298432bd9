/** Collects the facts about which limit of its queue holds a task back. core/flow/held-back.ts draws the conclusion. */
import { type HeldBackFacts, heldBackBy } from '../../core/flow/held-back.ts'
import { ratesOf } from '../../core/flow/limits.ts'
import type { Rate } from '../../core/flow/rate.ts'
import type { Instant } from '../../core/task.ts'
import type { Session } from '../session.ts'
import { groupRate, queueRate } from './permits.ts'
import type { Queues } from './queues.ts'

const RUNNING = [{ status: 'running' }] as const
/** Counted up to this many: the sentence needs no more. */
const MOST = 1_000

/** null: no limit does, as far as the last refresh knows. */
export const heldBack = async (
  session: Session,
  { limits, looks }: Queues,
  { queue, group }: { readonly queue: string; readonly group: string | null },
  when: (at: Instant) => string,
): Promise<string | null> => {
  const inForce = limits.of(queue)
  if (inForce === null) return null
  const { store } = session
  const { queue: rate, group: ofGroup, burst } = ratesOf(inForce)
  const next = async (name: string, given: Rate | null): Promise<Instant | null> =>
    given === null ? null : looks.permits.nextPermit(name, looks.rateInForce(queue, given, burst))
  const [running, holders, permitAt, groupPermitAt] = await Promise.all([
    inForce.concurrency === undefined ? 0 : countRunning(session, queue, Math.max(MOST, inForce.concurrency)),
    group === null || inForce.perGroup === undefined
      ? []
      : store
          .list({ queue, group, views: RUNNING }, { order: 'oldest', limit: MOST, now: null })
          .then(({ tasks }) => tasks),
    next(queueRate(queue), rate),
    group === null ? null : next(groupRate(queue, group), ofGroup),
  ])
  const groupHolders = holders.flatMap(({ lease }) => lease?.workerId ?? [])
  const facts: HeldBackFacts = { queue, group, limits: inForce, running, groupHolders, permitAt, groupPermitAt }
  return heldBackBy(facts, when)
}

const countRunning = async ({ store }: Session, queue: string, cap: number): Promise<number> =>
  (await store.count({ queue, views: RUNNING }, { cap, now: null })).count
