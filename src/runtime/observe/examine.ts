/** Collects facts about a store and its users without changing anything. core/observe/diagnosis.ts judges them. */

import { HoldfastError } from '../../core/errors.ts'
import { type Fact, type Finding, findingOf } from '../../core/observe/diagnosis.ts'
import { handles } from '../../core/observe/why.ts'
import { slotAfter } from '../../core/schedules/recurrence.ts'
import { isDeleted, recurrenceOf } from '../../core/schedules/schedule.ts'
import { SCHEDULE } from '../../core/storage/document-names.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import type { Document } from '../../store/store.ts'
import type { Queues } from '../queues/queues.ts'
import { readSchedule, type SlotRunner } from '../schedules/slot-runner.ts'
import type { Session } from '../session.ts'
import { countTasks } from '../tasks/inspect.ts'
import { liveWorkers, type WorkerInfo } from '../worker/registration.ts'

/** Any live worker would have taken back a lease that lapsed this long ago. */
const FORGOTTEN = 30_000
const MOST_RUNNING = 10_000
const MOST_READY = 10_000
/** How many waiting tasks of a queue are read to find types without a handler. */
const SAMPLE = 200
/** The most tasks that one of these reads may scan: the dashboard asks every few seconds. */
const MAX_SCANNED = 50_000

/** A check that fails is reported as such and does not hide the others. */
export const examine = async (
  session: Session,
  queues: Queues,
  runner: SlotRunner,
  isQuick = false,
): Promise<Finding[]> => {
  const workers = liveWorkers(session)
  // The check that needs them reports the error.
  workers.catch(() => {})
  const questions: readonly (readonly [what: string, ask: () => Promise<readonly Fact[]>])[] = [
    ['the store itself', async () => (isQuick ? [] : ((await session.store.examine?.()) ?? []))],
    ['its clock', () => clockFacts(session)],
    ['workers', async () => [workersFact(await workers), ...stuckFacts(await workers)]],
    ['queues', async () => queueFacts(session, queues, await workers)],
    ['running tasks', async () => [await leasesFact(session)]],
    ['schedules', async () => scheduleFacts(session, runner, (await workers).length > 0)],
  ]
  const facts: Fact[] = []
  for (const [what, ask] of questions) facts.push(...(await answer(what, ask)))
  return facts.map(findingOf)
}

const answer = async (what: string, ask: () => Promise<readonly Fact[]>): Promise<readonly Fact[]> => {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    return [{ check: 'reading', what, error: error.message }]
  }
}

/** Empty for a store that uses this machine's clock. */
const clockFacts = async ({ store, clock }: Session): Promise<Fact[]> => {
  if (store.capabilities.has('host-clock')) return []
  const before = clock.mono()
  const { at, uncertainty } = await store.now()
  const took = clock.mono() - before
  return [{ check: 'clock', ahead: clock.wall() - at - took / 2, uncertainty: uncertainty + took / 2 }]
}

const workersFact = (workers: readonly WorkerInfo[]): Fact => {
  const versions: Record<string, number> = {}
  for (const { version } of workers) versions[version] = (versions[version] ?? 0) + 1
  return { check: 'workers', versions }
}

const stuckFacts = (workers: readonly WorkerInfo[]): Fact[] =>
  workers
    .filter(({ stuck }) => stuck.count > 0)
    .map(({ id, stuck, concurrency, claiming }) => ({
      check: 'stuck',
      worker: id,
      count: stuck.count,
      slots: concurrency,
      types: [...new Set(stuck.tasks.map(({ type }) => type))].sort(),
      isClaiming: claiming,
    }))

const queueFacts = async (session: Session, queues: Queues, workers: readonly WorkerInfo[]): Promise<Fact[]> => {
  const [names, paused] = [await queues.names(), await queues.refresh()]
  const facts: Fact[] = []
  for (const queue of [...new Set([...names, ...paused, ...queues.limits.queues])].sort()) {
    const { count: ready } = await countTasks(
      session,
      { queue, status: 'ready' },
      { cap: MOST_READY, maxScanned: MAX_SCANNED },
    )
    const isPaused = paused.has(queue)
    const sample = ready === 0 || isPaused ? [] : await oldestReady(session, queue)
    const limit = await limitFact(session, queue, queues.limits.of(queue)?.concurrency, sample)
    const unserved = unservedTypes(queue, sample, workers)
    facts.push({ check: 'queue', queue, ready, isPaused, unserved, ...(limit === null ? null : { limit }) })
    for (const group of queues.limits.pausedGroups(queue).keys()) {
      const { count } = await countTasks(
        session,
        { queue, group, status: 'ready' },
        { cap: MOST_READY, maxScanned: MAX_SCANNED },
      )
      facts.push({ check: 'paused-group', queue, group, ready: count })
    }
  }
  return facts
}

const oldestReady = async ({ store }: Session, queue: string): Promise<readonly TaskRecord[]> => {
  const query = { queue, views: [{ status: 'pending', available: 'now' }] } as const
  return (await store.list(query, { order: 'oldest', limit: SAMPLE, maxScanned: MAX_SCANNED, now: null })).tasks
}

/** null: nothing waits behind such a limit. */
const limitFact = async (
  session: Session,
  queue: string,
  concurrency: number | undefined,
  sample: readonly TaskRecord[],
): Promise<NonNullable<Extract<Fact, { check: 'queue' }>['limit']> | null> => {
  if (concurrency === undefined || sample.length === 0) return null
  const { count: running } = await countTasks(session, { queue, status: 'running' }, { cap: MOST_RUNNING })
  const since = Math.min(...sample.map(({ availableAt }) => availableAt))
  return { running, concurrency, waited: session.time.now() - since }
}

const unservedTypes = (
  queue: string,
  sample: readonly TaskRecord[],
  workers: readonly WorkerInfo[],
): readonly string[] => {
  const here = workers.filter(({ queues }) => queues.includes(queue))
  return [...new Set(sample.map(({ type }) => type))]
    .filter((type) => !here.some((worker) => handles(worker, type)))
    .sort()
}

const leasesFact = async ({ store, time }: Session): Promise<Fact> => {
  const running = (
    await store.list({ views: [{ status: 'running' }] }, { order: 'oldest', limit: MOST_RUNNING, now: null })
  ).tasks
  const now = time.now()
  const ages = running.map(({ lease }) => now - (lease?.expiresAt ?? now)).filter((age) => age > FORGOTTEN)
  return { check: 'leases', lapsed: ages.length, oldest: ages.reduce((most, age) => Math.max(most, age), 0) }
}

const scheduleFacts = async (session: Session, runner: SlotRunner, hasWorkers: boolean): Promise<Fact[]> => {
  const facts: Fact[] = []
  for (const document of await session.store.documents.list(SCHEDULE)) {
    const id = document.name.slice(SCHEDULE.length)
    const late = await lateness(document, runner, session.time.now())
    if (late === 'deleted') continue
    facts.push({ check: 'schedule', id, late: late ?? 0, isReadable: late !== null, hasWorkers })
  }
  return facts
}

/** How late the next slot of a schedule is; null if the schedule cannot be read. */
const lateness = async (document: Document, runner: SlotRunner, now: Instant): Promise<number | 'deleted' | null> => {
  try {
    const kept = readSchedule(document)
    if (isDeleted(kept)) return 'deleted'
    if (kept.paused) return 0
    const end = await runner.lastEnd(kept)
    const slot = end === null ? null : slotAfter(recurrenceOf(kept, end), kept.cursor)
    return slot === null ? 0 : Math.max(0, now - slot)
  } catch {
    return null
  }
}
