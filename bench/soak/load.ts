/** The load of the soak: a little of everything, at a steady rate. */
import type { Client, SubmitManyItem } from '../../src/index.ts'
import { pace } from '../pace.ts'

export const QUEUES = ['default', 'media', 'api'] as const
/** What nobody serves: its tasks expire. */
const UNSERVED = 'unserved'
/** Ended tasks are kept for so long, so that the store is of one size after that. */
const KEPT = '2m'
const TICK_MS = 100
const MOST_IN_FLIGHT = 200

type Kind = (n: number) => SubmitManyItem

/** Of a hundred tasks so many are of this kind. */
const KINDS: readonly (readonly [share: number, kind: Kind])[] = [
  [40, () => ({ type: 'mail', input: { at: Date.now() }, tags: { of: 'soak' } })],
  [
    18,
    (n) => ({ type: 'resize', input: { at: Date.now() }, queue: 'media', group: `tenant-${n % 8}`, priority: n % 3 }),
  ],
  [14, (n) => ({ type: 'charge', input: { n }, maxRetries: 2, retryPolicy: { base: '200ms', max: '2s' } })],
  [6, () => ({ type: 'onboard', input: { plan: 'y'.repeat(1_000) } })],
  [5, () => ({ type: 'approve', input: null })],
  [4, () => ({ type: 'nobody', input: null, queue: UNSERVED, ttl: '2s' })],
  [4, () => ({ type: 'poll', input: null })],
  [3, (n) => ({ type: 'index', input: { n }, coalesce: { key: `doc-${n % 20}`, delay: '500ms' } })],
  [2, (n) => ({ type: 'order', input: { half: n >> 1 }, idempotencyKey: `order-${n >> 1}`, idempotencyTtl: KEPT })],
  [2, (n) => ({ type: 'call', input: { n }, queue: 'api' })],
  [1, (n) => ({ type: 'later', input: { n }, delay: '10s' })],
  [1, (n) => ({ type: 'remote', input: { n }, queue: 'remote' })],
]

const TURN: readonly Kind[] = KINDS.flatMap(([share, kind]) => Array.from({ length: share }, () => kind))
/** Has no divisor in common with a hundred, so the kinds are mixed. */
const STRIDE = 37

/** Limits, retention and schedules. Before the other processes start, so that they know them from their first look. */
export const prepare = async (client: Client): Promise<void> => {
  await client.queue('media').limit({ concurrency: 12, perGroup: 2 })
  await client.queue('api').limit({ rate: '20/1s', burst: 10 })
  await client.retention.set({ completed: KEPT, failed: KEPT, cancelled: KEPT, expired: KEPT })
  await client.schedules.ensure({ id: 'every', type: 'tick', input: null, every: '10s' })
  await client.schedules.ensure({ id: 'after', type: 'tick', input: null, every: '5s', mode: 'fixed-delay' })
  await client.schedules.ensure({ id: 'cron', type: 'tick', input: null, cron: '* * * * *' })
}

export interface Load {
  /** Since it was asked last. */
  counts(): { readonly submitted: number; readonly refused: number }
  stop(): Promise<void>
}

export const startLoad = (client: Client, rate: number): Load => {
  let submitted = 0
  let refused = 0
  let n = 0
  const dueNow = pace(rate)
  const working = new Set<Promise<void>>()
  const during = (work: Promise<void>): void => {
    const done = work.catch(() => void refused++).finally(() => working.delete(done))
    working.add(done)
  }

  const submit = async (items: readonly SubmitManyItem[]): Promise<void> => {
    const results = await client.submitMany(items)
    for (const [index, result] of results.entries()) {
      if (!result.ok) {
        refused++
        continue
      }
      submitted++
      const { type } = items[index]!
      // A signal may come before its wait does.
      if (type === 'approve') during(client.signal(result.task.id, 'decision', { yes: true }).then(() => {}))
      if (type === 'later' && submitted % 2 === 0) during(client.cancel(result.task.id).then(() => {}))
    }
  }

  const tick = (): void => {
    const due = dueNow()
    if (due === 0) return
    const items = Array.from({ length: due }, () => TURN[(++n * STRIDE) % TURN.length]!(n))
    if (working.size >= MOST_IN_FLIGHT) refused += due
    else during(submit(items))
  }
  const timer = setInterval(tick, TICK_MS)
  return {
    counts() {
      const counted = { submitted, refused }
      submitted = 0
      refused = 0
      return counted
    },
    async stop() {
      clearInterval(timer)
      await Promise.all(working)
    },
  }
}
