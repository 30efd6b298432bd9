/** Chooses the next random call of a model walk: any call of the contract, sometimes with outdated records. */
import { amend, runNow } from '../core/amend.ts'
import { HoldfastError } from '../core/errors.ts'
import type { ClaimLimits } from '../core/flow/group-turns.ts'
import type { KeyRecord } from '../core/idempotency.ts'
import * as machine from '../core/machine.ts'
import { recordSteps, settleWaits, signal } from '../core/steps/steps.ts'
import { newSubmission } from '../core/submission.ts'
import type { Change, Instant, TaskRecord, TaskStatus } from '../core/task.ts'
import { arrive, depart } from '../core/transfer/transfer.ts'
import { VIEWS, viewFilter } from '../core/views.ts'
import type { ClaimRequest, Insertion, Page, Query, Removal, Renewal } from '../store/store.ts'
import type { Model } from './model.ts'
import type { Random } from './random.ts'

/** An id that no task has. */
const UNKNOWN_ID = '00000000-0000-7000-8000-00000000dead'

export type Command =
  | { readonly do: 'insert'; readonly insertions: readonly Insertion[]; readonly now: Instant }
  | { readonly do: 'claim'; readonly want: ClaimRequest }
  | { readonly do: 'commit'; readonly changes: readonly Change[] }
  | { readonly do: 'renew'; readonly renewals: readonly Renewal[]; readonly now: Instant }
  | { readonly do: 'remove'; readonly removals: readonly Removal[] }
  | { readonly do: 'find'; readonly key: string }
  | { readonly do: 'list'; readonly query: Query; readonly page: Page }
  | { readonly do: 'count'; readonly query: Query; readonly cap: number; readonly now: Instant }

/** What the walk knows when it chooses a call. */
export interface Situation {
  readonly random: Random
  readonly model: Model
  /** Records as the store returned them, the latest of each task last. Some are outdated. */
  readonly seen: readonly TaskRecord[]
  readonly step: number
  readonly now: Instant
  readonly amends: boolean
}

const QUEUES = ['default', 'mail'] as const
const TYPES = ['a', 'b', 'c'] as const
const KEYS = ['k1', 'k2', 'k3', 'k4'] as const
const GROUPS = ['a', 'b', 'c c', 'ä/é'] as const
const WORKERS = ['worker-1', 'worker-2'] as const

export const nextCommand = (situation: Situation): Command => {
  const { random, model } = situation
  const roll = model.tasks.size === 0 ? 0 : random.below(100)
  if (roll < 18) return inserting(situation)
  if (roll < 40) return claiming(situation)
  if (roll < 72) return committing(situation)
  if (roll < 82) return renewing(situation)
  if (roll < 87) return removing(situation)
  if (roll < 90) return { do: 'find', key: random.pick(KEYS) }
  if (roll < 95) return listing(situation)
  return { do: 'count', query: anyQuery(situation), cap: random.pick([0, 3, 1_000]), now: situation.now }
}

// ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

const several = <T>(random: Random, most: number, make: (i: number) => T): T[] =>
  Array.from({ length: 1 + random.below(most) }, (_, i) => make(i))

const inserting = (situation: Situation): Command => ({
  do: 'insert',
  now: situation.now,
  insertions: several(situation.random, 4, (i) => {
    const { random, model, step } = situation
    const taken = random.chance(0.1) ? random.pick([...model.tasks.keys()]) : undefined
    return insertion(situation, taken ?? newId(random, step, i), `submit-${step}.${i}`)
  }),
})

/** Not in the order of time, so that insertion order is not enough for a store to pass. */
const newId = (random: Random, step: number, i: number): string =>
  `0190${random.below(0x10000).toString(16).padStart(4, '0')}-0000-7000-8000-${(step * 100 + i).toString(16).padStart(12, '0')}`

const insertion = ({ random, model, now }: Situation, id: string, op: string): Insertion => {
  const key = random.chance(0.3) ? random.pick(KEYS) : undefined
  const input = { text: JSON.stringify({ dice: random.below(1_000) }), encoding: 'json' as const }
  const { task: fresh } = newSubmission(
    random.pick(TYPES),
    input,
    {
      queue: random.pick(QUEUES),
      priority: random.pick([-1, 0, 0, 1]),
      ...(random.chance(0.5) ? { group: random.pick(GROUPS) } : null),
      delay: { milliseconds: random.pick([0, 0, 0, 30, 400]) },
      maxRetries: random.pick([0, 1, 3, null]),
      maxReschedules: random.pick([0, 1, null]),
      ...(random.chance(0.3) ? { ttl: { milliseconds: random.below(900) } } : null),
      ...(random.chance(0.3) ? { tags: { color: random.pick(['red', 'blue']) } } : null),
      ...(key === undefined ? null : { idempotencyKey: key }),
    },
    { now, id, op, by: 'walk' },
  )
  if (key === undefined) return { task: fresh }
  const held = model.keys.get(key)?.taskId
  const record: KeyRecord = {
    key,
    taskId: id,
    hash: op,
    expiresAt: now + random.below(2_000),
    exact: random.chance(0.5),
  }
  const replaces = held !== undefined && random.chance(0.3) ? { replaces: held } : null
  return { task: fresh, key: record, ...replaces }
}

const claiming = ({ random, step, now }: Situation): Command => ({
  do: 'claim',
  want: {
    queue: random.pick(QUEUES),
    types: random.pick([null, ['a'], ['a', 'c'], ['b', 'a', 'c']]),
    limit: random.pick([0, 1, 1, 2, 5]),
    workerId: random.pick(WORKERS),
    op: `claim-${step}`,
    leaseTtl: 50 + random.below(300),
    dueLimit: random.pick([0, 1, 3, 100]),
    now,
    ...(random.chance(0.4) ? { limits: someLimits(random, now) } : null),
  },
})

const someLimits = (random: Random, now: Instant): ClaimLimits => ({
  concurrency: random.pick([null, null, 1, 3]),
  notAfter: random.pick([null, now, now, now - 1]),
  turns: random.chance(0.3)
    ? null
    : {
        perGroup: random.pick([null, 1, 1, 2]),
        after: random.pick([null, '', ...GROUPS]),
        mostEach: random.pick([1, 2, 10]),
        without: random.pick([[], [], ['a']]),
        only: random.pick([null, null, new Map([['b', 1]])]),
        passed: [],
      },
})

const committing = (situation: Situation): Command => {
  const changes = several(situation.random, 3, (i) => change(situation, i)).filter((one) => one !== null)
  return changes.length === 0 ? claiming(situation) : { do: 'commit', changes }
}

type Decide = (task: TaskRecord, actor: machine.Actor, random: Random) => Change | null

const held = (task: TaskRecord) => ({ token: task.lease!.token })

const MAX_PAYLOAD = 1_024
const STEPS = ['s1', 's2', 's3', 's4'] as const
const SIGNALS = ['go', 'stop'] as const

/** What a task remembers can only be told from its journal, which a claim and a list leave out. */
const hasWhole = ({ hasJournal, journal }: TaskRecord): boolean => !hasJournal || journal.length > 0

const step: Decide = (task, { now }, random) =>
  hasWhole(task)
    ? recordSteps(
        task,
        held(task),
        several(random, 2, () => ({
          name: random.pick(STEPS),
          value: random.chance(0.2) ? null : { text: String(random.below(9)), encoding: 'json' },
        })),
        { now, maxPayload: MAX_PAYLOAD },
      )
    : null

const wait: Decide = (task, { now }, random) => {
  if (!hasWhole(task)) return null
  const waits = several(random, 2, (i) => {
    const isSleep = random.chance(0.5)
    return {
      name: `${isSleep ? 'nap' : 'wait'}${i}.${random.below(3)}`,
      signal: isSleep ? null : random.pick(SIGNALS),
      until: isSleep || random.chance(0.5) ? now + random.below(400) : null,
    }
  })
  return settleWaits(task, held(task), waits, {
    now,
    maxPayload: MAX_PAYLOAD,
    refusal: () => random.pick([null, null, 'no']),
  }).change
}

const signalled: Decide = (task, actor, random) =>
  hasWhole(task)
    ? signal(
        task,
        { id: random.pick([actor.op, 'again']), name: random.pick(SIGNALS), value: { text: '1', encoding: 'json' } },
        actor,
        MAX_PAYLOAD,
      )
    : null

const leave: Decide = (task, actor) => depart(task, actor, 'elsewhere:')

/** Only the copy of a task that waited is opened. */
const open: Decide = (task, actor) => (task.archivedFrom === 'pending' ? arrive(task, actor, 'elsewhere:') : null)

const DECISIONS: Readonly<Record<TaskStatus, readonly [Decide, ...Decide[]]>> = {
  pending: [
    (task, { now, op }, random) =>
      machine.claim(task, { token: `${op}.1`, workerId: random.pick(WORKERS), leaseTtl: 50 + random.below(300), now }),
    (task, actor) => machine.expire(task, actor),
    (task, actor) => machine.cancel(task, actor, 'why not'),
    (task, actor, random) => machine.overdue(task, actor, random.next()),
    (task, actor) => runNow(task, actor),
    signalled,
    leave,
  ],
  running: [
    step,
    wait,
    signalled,
    (task, { now }, random) =>
      machine.complete(task, held(task), { text: String(random.below(9)), encoding: 'json' }, now),
    (task, { now }, random) =>
      machine.fail(task, held(task), {
        error: new Error('dice'),
        permanent: random.chance(0.3),
        now,
        random: random.next(),
      }),
    (task, { now }, random) => machine.timeOut(task, held(task), now, random.next()),
    (task, { now }, random) =>
      machine.reschedule(task, held(task), { delay: random.below(300), extendExpiration: random.pick([0, 500]), now }),
    (task, { now }) => machine.release(task, held(task), now),
    (task, actor) => machine.cancel(task, actor),
    (task, actor) => machine.retry(task, actor),
    (task, actor, random) => machine.overdue(task, actor, random.next()),
    (task, actor, random) => machine.overdue(task, actor, random.next()),
  ],
  completed: [(task, actor) => machine.archive(task, actor), leave],
  failed: [
    (task, actor) => machine.retry(task, actor),
    (task, actor, random) =>
      machine.replay(task, actor, {
        expiresAt: random.pick([null, actor.now + 400]),
        fresh: random.pick([false, true]),
      }),
    (task, actor) => machine.archive(task, actor),
    (task, actor) => machine.archive(task, actor, '01900000-0000-7000-8000-00000000abcd'),
  ],
  cancelled: [(task, actor) => machine.retry(task, actor), (task, actor) => machine.archive(task, actor)],
  expired: [(task, actor) => machine.archive(task, actor)],
  archived: [
    (task, actor) => machine.unarchive(task, actor),
    (task, actor) => machine.unarchive(task, actor),
    leave,
    open,
    open,
  ],
}

const amended: (typeof DECISIONS)['pending'][number] = (task, actor, random) =>
  amend(task, actor, {
    priority: random.below(3),
    availableAt: actor.now + random.pick([-50, 0, 200]),
    expiresAt: random.pick([null, actor.now + 300]),
    ...(random.chance(0.5) ? { input: String(random.below(9)), encoding: 'json' } : { tags: { n: '1' } }),
    ...(random.chance(0.3) ? { group: random.pick([null, ...GROUPS]) } : null),
  })

const change = ({ random, seen, step, now, amends }: Situation, i: number): Change | null => {
  const record = someone(random, seen)
  if (record === undefined) return null
  try {
    const decide =
      amends && record.status === 'pending' && random.chance(0.2) ? amended : random.pick(DECISIONS[record.status])
    return decide(record, { now, by: 'walk', op: `move-${step}.${i}` }, random)
  } catch (error) {
    // The machine refused: nothing to write.
    if (error instanceof HoldfastError) return null
    throw error
  }
}

/** Mostly the current record of a task, sometimes an older one. */
const someone = (random: Random, seen: readonly TaskRecord[]): TaskRecord | undefined => {
  const record = random.pick(seen)
  return record === undefined || random.chance(0.2) ? record : seen.findLast(({ id }) => id === record.id)
}

const renewing = ({ random, seen, now }: Situation): Command => {
  const holders = seen.filter(({ lease }) => lease !== null)
  const renewals = several(random, 3, (): Renewal => {
    const record = random.chance(0.9) ? someone(random, holders) : someone(random, seen)
    const renewal = {
      id: record?.id ?? UNKNOWN_ID,
      token: record?.lease?.token ?? 'none',
      leaseTtl: 50 + random.below(300),
    }
    return random.chance(0.5) ? { ...renewal, progress: String(random.below(100)) } : renewal
  })
  return { do: 'renew', renewals, now }
}

const removing = ({ random, seen }: Situation): Command => {
  const ended = seen.filter(({ status }) => status !== 'pending' && status !== 'running')
  const removals = several(random, 2, (): Removal => {
    const record = someone(random, ended.length > 0 ? ended : seen)
    return { id: record?.id ?? UNKNOWN_ID, revision: record?.revision ?? 1, endKey: random.chance(0.5) }
  })
  return { do: 'remove', removals }
}

// ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

const listing = (situation: Situation): Command => {
  const { random, model, now } = situation
  const after = random.chance(0.5) ? random.pick([...model.tasks.keys()]) : undefined
  const page: Page = { order: random.pick(['newest', 'oldest']), limit: random.pick([1, 5, 1_000]), now }
  return { do: 'list', query: anyQuery(situation), page: after === undefined ? page : { ...page, after } }
}

const anyQuery = ({ random, now }: Situation): Query => ({
  ...(random.chance(0.3) ? { queue: random.pick(QUEUES) } : null),
  ...(random.chance(0.3) ? { type: random.pick(TYPES) } : null),
  ...(random.chance(0.5) ? { views: several(random, 3, () => viewFilter(random.pick(VIEWS)!)) } : null),
  ...(random.chance(0.2) ? { tag: { name: 'color', value: random.pick(['red', 'blue', 'green']) } } : null),
  ...(random.chance(0.2) ? { workerId: random.pick(WORKERS) } : null),
  ...(random.chance(0.2) ? { createdAfter: now - random.below(3_000) } : null),
  ...(random.chance(0.2) ? { createdBefore: now - random.below(3_000) } : null),
  ...(random.chance(0.2) ? { completedBefore: now - random.below(3_000) } : null),
})
