/** The expected content of a store, computed by the core alone: records, keys, and the answers that follow from them. */
import assert from 'node:assert/strict'
import { claimOrder } from '../core/claim-order.ts'
import { permitted, UNLIMITED } from '../core/flow/group-turns.ts'
import { type KeyRecord, keyIsLive } from '../core/idempotency.ts'
import * as machine from '../core/machine.ts'
import { applyChange, type Change, type Instant, type TaskRecord } from '../core/task.ts'
import { matchesView } from '../core/views.ts'
import type {
  ClaimRequest,
  ClaimResult,
  Committed,
  Inserted,
  Insertion,
  Page,
  Query,
  Removal,
  Removed,
  Renewal,
  Renewed,
} from '../store/store.ts'

/** Without the store's private data. */
export const plain = ({ mark: _, ...record }: TaskRecord): TaskRecord => record

const withoutHistory = (record: TaskRecord): TaskRecord => ({ ...plain(record), history: [], journal: [] })

export class Model {
  readonly tasks = new Map<string, TaskRecord>()
  readonly keys = new Map<string, KeyRecord>()
  /** Tokens of claims under a limit of the queue, and under one of each group. */
  readonly #limited = { queue: new Set<string>(), group: new Set<string>() }

  insert({ task, key, replaces }: Insertion, now: Instant): Inserted {
    const held = key && this.keys.get(key.key)
    const holder = held === undefined ? null : (this.tasks.get(held.taskId) ?? null)
    if (held && held.taskId !== replaces && keyIsLive(held, holder !== null, now))
      return { outcome: 'existing', key: held, task: holder }
    const taken = this.tasks.get(task.id)
    if (taken) return { outcome: 'clash', task: taken }
    this.tasks.set(task.id, task)
    if (key) this.keys.set(key.key, key)
    return { outcome: 'created' }
  }

  commit(change: Change): Committed {
    const task = this.tasks.get(change.id)
    if (!task) return 'gone'
    const renewed = change.leaseExpiresAt !== undefined && change.leaseExpiresAt !== task.lease?.expiresAt
    if (task.revision !== change.revision || renewed) return 'conflict'
    this.tasks.set(task.id, applyChange(task, change))
    return 'written'
  }

  renew({ id, token, leaseTtl, progress }: Renewal, now: Instant): Renewed {
    const task = this.tasks.get(id)
    if (task?.status !== 'running' || task.lease?.token !== token) return 'lost'
    const lease = { ...task.lease, expiresAt: now + leaseTtl }
    this.tasks.set(id, { ...task, lease, progress: progress ?? task.progress })
    return task.cancelRequestedAt === null ? 'held' : 'cancel'
  }

  remove({ id, revision, endKey }: Removal): Removed {
    const task = this.tasks.get(id)
    if (!task) return 'gone'
    if (task.revision !== revision) return 'conflict'
    this.tasks.delete(id)
    const { idempotencyKey: key } = task
    if (endKey && key !== null && this.keys.get(key)?.taskId === id) this.keys.delete(key)
    return 'removed'
  }

  list(query: Query, { order, limit, after, now }: Page): TaskRecord[] {
    const forward = order === 'oldest'
    const beyond = ({ id }: TaskRecord): boolean => after === undefined || (forward ? id > after : id < after)
    const found = this.#matching(query, now!).filter(beyond)
    found.sort((a, b) => (a.id < b.id === forward ? -1 : 1))
    return found.slice(0, limit).map(withoutHistory)
  }

  count(query: Query, cap: number, now: Instant): number {
    return Math.min(cap, this.#matching(query, now).length)
  }

  #matching(query: Query, now: Instant): TaskRecord[] {
    return [...this.tasks.values()].filter(
      (task) =>
        (query.queue ?? task.queue) === task.queue &&
        (query.type ?? task.type) === task.type &&
        (query.group === undefined || task.group === query.group) &&
        (query.views?.some((view) => matchesView(task, view, now)) ?? true) &&
        (query.tag === undefined || task.tags?.[query.tag.name] === query.tag.value) &&
        (query.workerId === undefined || task.lease?.workerId === query.workerId) &&
        task.createdAt > (query.createdAfter ?? Number.NEGATIVE_INFINITY) &&
        task.createdAt < (query.createdBefore ?? Number.POSITIVE_INFINITY) &&
        (query.completedBefore === undefined ||
          (task.completedAt !== null && task.completedAt < query.completedBefore)),
    )
  }

  /** Checks a claim against what could have been leased, and adopts the result. The store chooses the tokens. */
  look(want: ClaimRequest, { leased, due, next, isHeldBack = false }: ClaimResult, exactOrder: boolean): void {
    const now = want.now!
    const waiting = this.#waiting(want)
    const ready = waiting.filter((task) => task.availableAt <= now && !machine.isExpiredAt(task, now)).sort(claimOrder)
    const ids = leased.map(({ id }) => id)
    const { limits = UNLIMITED } = want
    const permits = permitted(ready, this.#running(want), limits, want.limit, now)
    if (exactOrder) {
      const turn = permits.tasks.map(({ id }) => id)
      assert.deepEqual(ids, turn, 'leased in another order than that of turn')
      // A store that was told which groups to look at need not look at the others.
      if (want.limits !== undefined && ids.length < want.limit && limits.turns?.only == null)
        assert.equal(isHeldBack, permits.isHeldBack, 'what is held back was not told')
    }
    assert.ok(ids.length <= want.limit, 'more was leased than wanted')
    assert.equal(new Set(leased.map(({ lease }) => lease?.token)).size, leased.length, 'a token was given twice')
    for (const record of leased) this.#claimed(want, record, ready)
    this.#reported(want, due)
    if (want.limits !== undefined) this.#withinLimits(want, leased)
    if (ready.length < want.limit) this.#looksAgain(want, waiting, next)
  }

  #running({ queue }: ClaimRequest): TaskRecord[] {
    return [...this.tasks.values()].filter((task) => task.status === 'running' && task.queue === queue)
  }

  /** Of the tasks that were claimed under the same kind of limit no more run than it allows: a store may not know of the others. */
  #withinLimits(want: ClaimRequest, leased: readonly TaskRecord[]): void {
    const { concurrency, turns } = want.limits!
    const perGroup = turns?.perGroup ?? null
    for (const { lease } of leased) {
      if (concurrency !== null) this.#limited.queue.add(lease!.token)
      if (perGroup !== null) this.#limited.group.add(lease!.token)
    }
    const running = this.#running(want)
    const inQueue = running.filter(({ lease }) => this.#limited.queue.has(lease!.token)).length
    if (concurrency !== null && leased.length > 0)
      assert.ok(inQueue <= concurrency, 'more tasks run than the queue may')
    for (const { group } of leased) {
      if (group === null || turns === null) continue
      assert.ok(!turns.without.includes(group), `a task of group ${group} was leased`)
      const ofGroup = running.filter(
        (task) => task.group === group && this.#limited.group.has(task.lease!.token),
      ).length
      if (perGroup !== null) assert.ok(ofGroup <= perGroup, `more tasks of group ${group} run than may`)
    }
  }

  #waiting({ queue, types }: ClaimRequest): TaskRecord[] {
    const wanted = (task: TaskRecord): boolean => task.queue === queue && (types?.includes(task.type) ?? true)
    return [...this.tasks.values()].filter((task) => task.status === 'pending' && wanted(task))
  }

  #claimed({ op, workerId, leaseTtl, now }: ClaimRequest, record: TaskRecord, ready: readonly TaskRecord[]): void {
    const task = ready.find(({ id }) => id === record.id)
    assert.ok(task, `task ${record.id} was leased but was not ready`)
    const token = record.lease?.token ?? ''
    assert.ok(token.startsWith(`${op}.`), `token ${token} does not begin with the op of the look`)
    const expected = applyChange(task, machine.claim(task, { token, workerId, leaseTtl, now: now! }))
    this.tasks.set(task.id, expected)
    assert.deepEqual(plain(record), withoutHistory(expected), 'the leased task is not as the machine claims it')
  }

  #reported({ queue, dueLimit, now }: ClaimRequest, due: readonly TaskRecord[]): void {
    assert.ok(due.length <= dueLimit, 'more overdue tasks were reported than asked for')
    const actor = { now: now!, by: 'model', op: 'model' }
    const isOverdue = (task: TaskRecord): boolean => machine.overdue(task, actor, 0) !== null
    for (const record of due) {
      const task = this.tasks.get(record.id)
      assert.ok(task && isOverdue(task), `task ${record.id} was reported but is not overdue`)
      assert.deepEqual(plain(record), withoutHistory(task), 'the reported task is not as stored')
    }
    if (due.length === dueLimit) return
    const missed = [...this.tasks.values()].filter(
      (task) => task.queue === queue && isOverdue(task) && !due.some(({ id }) => id === task.id),
    )
    assert.deepEqual(
      missed.map(({ id }) => id),
      [],
      'overdue tasks were not reported',
    )
  }

  /** Later than the next instant at which a task needs attention is an error; earlier is allowed. */
  #looksAgain({ queue, now }: ClaimRequest, waiting: readonly TaskRecord[], next: Instant | null): void {
    const instants = waiting.filter(({ availableAt }) => availableAt > now!).map(({ availableAt }) => availableAt)
    for (const task of this.tasks.values()) {
      if (task.queue !== queue) continue
      if (task.status === 'running') instants.push(task.lease!.expiresAt)
      if (task.status === 'pending' && task.expiresAt !== null) instants.push(task.expiresAt)
    }
    if (instants.length > 0)
      assert.ok(next !== null && next <= Math.max(now!, Math.min(...instants)), `the next look at ${next} is too late`)
  }
}
