/** The reference store: everything in maps, lost when the process ends. Reads like the contract. */

import { claimOrder } from '../../core/claim-order.ts'
import { HoldfastError } from '../../core/errors.ts'
import { groupsInTurn, permitted, UNLIMITED } from '../../core/flow/group-turns.ts'
import { canCommit, isOverdue, isReady, renewed } from '../../core/guards.ts'
import { type KeyRecord, keyIsLive } from '../../core/idempotency.ts'
import { claim } from '../../core/machine.ts'
import { nextClaimAt } from '../../core/storage/next-claim.ts'
import { cutToWeight, weightOf } from '../../core/storage/page-weight.ts'
import { applyChange, type Instant, type TaskRecord, withoutHistory } from '../../core/task.ts'
import { matches } from '../matching.ts'
import type {
  Capability,
  ClaimRequest,
  ClaimResult,
  Committed,
  Counted,
  CountLimits,
  Document,
  GroupsRequest,
  Inserted,
  Insertion,
  Page,
  Query,
  Removal,
  Removed,
  Renewal,
  Renewed,
  Store,
  TaskList,
  WakeListener,
} from '../store.ts'
import { WakeListeners } from '../wake-listeners.ts'

/** Options of `openMemory`. */
export interface MemoryOptions {
  /** The store's clock. */
  readonly wall?: () => Instant
}

interface Kept {
  readonly tasks: Map<string, TaskRecord>
  readonly keys: Map<string, KeyRecord>
  readonly documents: Map<string, Document>
}

/** Opens a store in the memory of this process. */
export const openMemory = ({ wall = Date.now }: MemoryOptions = {}): Store => new MemoryStore(wall)

class MemoryStore implements Store {
  readonly capabilities: ReadonlySet<Capability> = new Set<Capability>([
    'exact-order',
    'host-clock',
    'due-of-all-queues',
  ])
  readonly address = 'memory:'
  readonly leaseTtl = 5_000
  readonly claimsAtOnce = 1
  readonly #wall: () => Instant
  /** null when closed. */
  #kept: Kept | null = { tasks: new Map(), keys: new Map(), documents: new Map() }
  readonly #listeners = new WakeListeners()

  constructor(wall: () => Instant) {
    this.#wall = wall
  }

  #mustBeOpen(): Kept {
    if (this.#kept === null) throw new HoldfastError('STORE_CLOSED', 'memory: is closed')
    return this.#kept
  }

  get #tasks(): Map<string, TaskRecord> {
    return this.#mustBeOpen().tasks
  }

  get #keys(): Map<string, KeyRecord> {
    return this.#mustBeOpen().keys
  }

  get #documents(): Map<string, Document> {
    return this.#mustBeOpen().documents
  }

  async now(): Promise<{ at: Instant; uncertainty: number }> {
    this.#mustBeOpen()
    return { at: this.#wall(), uncertainty: 0 }
  }

  async insert(insertions: readonly Insertion[], { now }: { now: Instant | null }): Promise<Inserted[]> {
    const at = now ?? this.#wall()
    const inserted = insertions.map((insertion) => this.#insertOne(insertion, at))
    this.#listeners.notify(insertions.map(({ task }) => task.queue))
    return inserted
  }

  #insertOne({ task, key, replaces }: Insertion, now: Instant): Inserted {
    const held = key && this.#keys.get(key.key)
    if (held && held.taskId !== replaces) {
      const holder = this.#tasks.get(held.taskId) ?? null
      if (keyIsLive(held, holder !== null, now)) return { outcome: 'existing', key: held, task: holder }
    }
    const clash = this.#tasks.get(task.id)
    if (clash) return { outcome: 'clash', task: clash }
    this.#tasks.set(task.id, task)
    if (key) this.#keys.set(key.key, key)
    return { outcome: 'created' }
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const now = request.now ?? this.#wall()
    const all = [...this.#tasks.values()]
    const waiting = all.filter(
      (task) =>
        task.status === 'pending' &&
        task.queue === request.queue &&
        (request.types?.includes(task.type) ?? true) &&
        (request.id === undefined || task.id === request.id),
    )
    const due = all.filter((task) => isOverdue(task, now)).slice(0, request.dueLimit)
    const ready = waiting.filter((task) => isReady(task, now)).sort(claimOrder)
    const running = all.filter((task) => task.status === 'running' && task.queue === request.queue)
    const { tasks, full, isHeldBack } = permitted(ready, running, request.limits ?? UNLIMITED, request.limit, now)
    const leased = tasks.map((task, i) => {
      const change = claim(task, {
        token: `${request.op}.${i + 1}`,
        workerId: request.workerId,
        leaseTtl: request.leaseTtl,
        now,
      })
      this.#tasks.set(task.id, applyChange(task, change))
      return withoutHistory(this.#tasks.get(task.id)!)
    })
    const next = nextClaimAt(this.#tasks.values(), request, now)
    return { leased, due: due.map(withoutHistory), next, full, isHeldBack }
  }

  async waitingGroups({ queue, types, after, limit, now }: GroupsRequest): Promise<readonly string[]> {
    const at = now ?? this.#wall()
    const ready = [...this.#tasks.values()].filter(
      (task) => task.queue === queue && (types?.includes(task.type) ?? true) && isReady(task, at),
    )
    return groupsInTurn(ready, after).slice(0, limit)
  }

  async commit(changes: readonly Parameters<typeof applyChange>[1][]): Promise<Committed[]> {
    const results = changes.map((change): Committed => {
      const task = this.#tasks.get(change.id)
      if (!task) return 'gone'
      if (!canCommit(task, change)) return 'conflict'
      this.#tasks.set(task.id, applyChange(task, change))
      return 'written'
    })
    if (changes.some(({ set }) => set.status === 'pending'))
      this.#listeners.notify([...new Set(changes.map(({ queue }) => queue))])
    return results
  }

  async renew(renewals: readonly Renewal[], now: Instant | null): Promise<Renewed[]> {
    const at = now ?? this.#wall()
    return renewals.map((renewal): Renewed => {
      const task = this.#tasks.get(renewal.id)
      const after = task === undefined ? null : renewed(task, renewal, at)
      if (after === null) return 'lost'
      this.#tasks.set(after.id, after)
      return after.cancelRequestedAt === null ? 'held' : 'cancel'
    })
  }

  async remove(removals: readonly Removal[]): Promise<Removed[]> {
    return removals.map(({ id, revision, endKey }): Removed => {
      const task = this.#tasks.get(id)
      if (!task) return 'gone'
      if (task.revision !== revision) return 'conflict'
      this.#tasks.delete(id)
      if (endKey && task.idempotencyKey !== null && this.#keys.get(task.idempotencyKey)?.taskId === id)
        this.#keys.delete(task.idempotencyKey)
      return 'removed'
    })
  }

  async get(ids: readonly string[]): Promise<(TaskRecord | null)[]> {
    return ids.map((id) => this.#tasks.get(id) ?? null)
  }

  async find(key: string): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> {
    const held = this.#keys.get(key)
    return held ? { key: held, task: this.#tasks.get(held.taskId) ?? null } : null
  }

  async list(query: Query, { order, limit, after, now }: Page): Promise<TaskList> {
    const at = now ?? this.#wall()
    const forward = order === 'oldest'
    const found = [...this.#tasks.values()]
      .filter(
        (task) => matches(task, query, at) && (after === undefined || (forward ? task.id > after : task.id < after)),
      )
      .sort((a, b) => (a.id < b.id === forward ? -1 : 1))
      .slice(0, limit)
    return { tasks: cutToWeight(found, weightOf).taken.map(withoutHistory), stoppedAt: null }
  }

  async count(query: Query, { cap, now }: CountLimits): Promise<Counted> {
    const at = now ?? this.#wall()
    let count = 0
    for (const task of this.#tasks.values()) {
      if (!matches(task, query, at)) continue
      if (count === cap) return { count, capped: true }
      count++
    }
    return { count, capped: false }
  }

  readonly documents = {
    get: async (name: string) => this.#documents.get(name) ?? null,
    put: async (name: string, value: string, version: number) => {
      if ((this.#documents.get(name)?.version ?? 0) !== version) return null
      this.#documents.set(name, { name, value, version: version + 1 })
      return version + 1
    },
    list: async (prefix: string) =>
      [...this.#documents.values()]
        .filter(({ name }) => name.startsWith(prefix))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    delete: async (name: string, version: number) => {
      const held = this.#documents.get(name)
      if (held && held.version !== version) return false
      this.#documents.delete(name)
      return true
    },
  }

  readonly detachedKeys = {
    list: async ({ limit, after }: { limit: number; after?: string }) =>
      [...this.#keys.values()]
        .filter(({ key, taskId }) => !this.#tasks.has(taskId) && (after === undefined || key > after))
        .sort((a, b) => (a.key < b.key ? -1 : 1))
        .slice(0, limit),
    put: async (keys: readonly KeyRecord[], now: Instant | null) => {
      const at = now ?? this.#wall()
      return keys.map((key) => {
        const held = this.#keys.get(key.key)
        if (held && keyIsLive(held, this.#tasks.has(held.taskId), at)) return false
        this.#keys.set(key.key, key)
        return true
      })
    },
  }

  wake(listener: WakeListener): () => void {
    return this.#listeners.add(listener)
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    this.#kept = null
  }
}
