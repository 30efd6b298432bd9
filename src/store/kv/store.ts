/** The store contract on a versioned key-value store: get, create, compare-and-set, delete and ordered lists. */

import { HoldfastError } from '../../core/errors.ts'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Fact } from '../../core/observe/diagnosis.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import type {
  Capability,
  ClaimRequest,
  ClaimResult,
  Committed,
  Counted,
  CountLimits,
  DetachedKeys,
  Documents,
  GroupsRequest,
  Inserted,
  Insertion,
  InsertOptions,
  Keeper,
  KeeperOptions,
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
import type { KeyValue } from './access/key-value.ts'
import { RetryingKeyValue } from './access/retrying-key-value.ts'
import { systemTimers, type Timers } from './access/timers.ts'
import { Claimer } from './claimer.ts'
import { Discards } from './cleanup/discards.ts'
import { Sweeper } from './cleanup/sweeper.ts'
import { Committer } from './committer.ts'
import { KvDetachedKeys } from './detached-keys.ts'
import { KvDocuments } from './documents.ts'
import { EndedIndex } from './ended/ended-index.ts'
import { type Guard, guardedDetachedKeys, guardedDocuments } from './guarded.ts'
import { Contention } from './hints/contention.ts'
import { HintCache } from './hints/hint-cache.ts'
import type { HintContext, Hints } from './hints/hints.ts'
import { KeyHints } from './hints/key-hints.ts'
import { Inserter } from './inserter.ts'
import { invalidateOnRenew } from './invalidate-on-renew.ts'
import { LimitedClaimer } from './limited-claimer.ts'
import { OpenKeepers } from './open-keepers.ts'
import { Places } from './places/places.ts'
import { sweepRegisters } from './places/sweep-registers.ts'
import { Queries } from './queries.ts'
import { raiseFences } from './raise-fences.ts'
import { Keys } from './records/keys.ts'
import { isLive, type LiveTask, Tasks } from './records/tasks.ts'
import { WaitingGroups } from './waiting-groups.ts'

export interface KvOptions {
  readonly capabilities: readonly Capability[]
  readonly leaseTtl: number
  /** Rejects when the store is no longer the one that was opened. Called now and then. */
  readonly checkIdentity?: () => Promise<void>
  readonly examine?: () => Promise<readonly Fact[]>
  /** Gives the store a new identity. */
  readonly renewIdentity?: () => Promise<void>
  /** Renews leases on another thread. */
  readonly keeper?: (options: KeeperOptions) => Keeper
  readonly timers?: Timers
  /** Keep an index of ended tasks. Worth while where every request is slow or has a price. Default false. */
  readonly indexesEnded?: boolean
  /** Default: hints as keys, with a wake object. */
  readonly hints?: (context: HintContext) => Hints
}

const SWEEP_EVERY = 300_000
const MOST_SWEEPS = 20
const IDENTITY_EVERY = 60_000

export class KvStore implements Store {
  readonly capabilities: ReadonlySet<Capability>
  readonly address: string
  readonly leaseTtl: number
  readonly claimsAtOnce = 2
  readonly documents: Documents
  readonly detachedKeys: DetachedKeys
  readonly examine?: () => Promise<readonly Fact[]>
  readonly acceptRestore?: () => Promise<number>
  readonly keeper?: (options: KeeperOptions) => Keeper
  readonly #kv: RetryingKeyValue
  readonly #discards: Discards
  readonly #hints: Hints
  readonly #hintCache = new HintCache()
  readonly #ended: EndedIndex | null
  readonly #tasks: Tasks
  readonly #inserter: Inserter
  readonly #committer: Committer
  readonly #claimer: Claimer
  readonly #keepers = new OpenKeepers()
  readonly #limitedClaimer: LimitedClaimer
  readonly #places: Places
  readonly #waitingGroups: WaitingGroups
  readonly #queries: Queries
  readonly #sweeper: Sweeper
  /** Other processes are followed while this process has listeners. */
  readonly #listeners = new WakeListeners((isOn) => this.#follow(isOn))
  #stopFollowing: (() => void) | null = null
  readonly #calls = new Set<Promise<unknown>>()
  #closing: Promise<void> | null = null
  #sweptAt = Number.NEGATIVE_INFINITY
  #sweptPlaces: string | undefined
  #isMaintaining = false
  readonly #checkIdentity: (() => Promise<void>) | undefined
  readonly #mono: () => number
  #identifiedAt: number

  constructor(kv: KeyValue, options: KvOptions) {
    const { capabilities, leaseTtl, checkIdentity, examine, renewIdentity, keeper, timers = systemTimers } = options
    this.#checkIdentity = checkIdentity
    if (examine !== undefined) this.examine = () => this.#call(examine)
    if (renewIdentity !== undefined)
      this.acceptRestore = () =>
        this.#call(async () => {
          await renewIdentity()
          return raiseFences(this.#kv, this.#committer)
        })
    if (keeper !== undefined)
      this.keeper = (own) =>
        this.#keepers.add(invalidateOnRenew(keeper, own, (id) => this.#renewedByKeeper(id, own.leaseTtl)))
    this.#mono = () => timers.mono()
    this.#identifiedAt = timers.mono()
    this.capabilities = new Set(capabilities)
    this.address = kv.address
    this.leaseTtl = leaseTtl
    this.#kv = new RetryingKeyValue(kv)
    this.#discards = new Discards((keys) => this.#kv.delete(keys))
    this.#ended =
      options.indexesEnded === true
        ? new EndedIndex(this.#kv, timers, {
            withdraw: (hints) => this.#hints.withdraw(hints),
            read: (id) => this.#read(id),
          })
        : null
    const inHand = new Set<string>()
    const contention = new Contention(() => timers.mono())
    const context: HintContext = {
      retry: this.#kv.retry,
      cache: this.#hintCache,
      contention,
      isTaken: (hint) => this.#hints.isWithdrawn(hint) || (this.#ended?.writer.has(hint) ?? false) || inHand.has(hint),
    }
    const parts = { raw: kv, kv: this.#kv, discards: this.#discards, timers }
    this.#hints = options.hints?.(context) ?? new KeyHints(parts, context)
    this.#tasks = new Tasks(this.#kv, this.#discards, this.#hints, this.#ended?.writer ?? null)
    const keys = new Keys(this.#kv)
    const now = (): Promise<Instant> => this.#early()
    this.#inserter = new Inserter(this.#hints, this.#tasks, keys, now)
    this.#committer = new Committer(this.#kv, this.#tasks, keys, (after, before) => this.#written(after, before))
    this.#claimer = new Claimer({
      tasks: this.#tasks,
      hints: this.#hints,
      cache: this.#hintCache,
      contention,
      inHand,
      committer: () => this.#committer,
      leasing: (op, id) => this.#keepers.leasing(op, id),
    })
    this.#places = new Places({
      kv: this.#kv,
      tasks: this.#tasks,
      timers,
      now,
      observe: (live) => this.#claimer.observe(live),
      writeEmptyTombstone: (id, at) => this.#committer.writeEmptyTombstone(id, at),
    })
    this.#limitedClaimer = new LimitedClaimer({
      tasks: this.#tasks,
      hints: this.#hints,
      places: this.#places,
      contention,
      claimer: this.#claimer,
      now,
    })
    this.#waitingGroups = new WaitingGroups(this.#hints, this.#tasks)
    this.#queries = new Queries(this.#kv, this.#tasks, this.#hints, this.#ended)
    this.#sweeper = new Sweeper(this.#kv, this.#tasks, keys, this.#discards)
    const guard: Guard = (call) => this.#call(call)
    this.documents = guardedDocuments(new KvDocuments(this.#kv, now, this.#hints.documentChanges ?? null), guard)
    this.detachedKeys = guardedDetachedKeys(new KvDetachedKeys(this.#kv, this.#tasks, keys, now), guard)
  }

  async #read(id: string): Promise<TaskRecord | null> {
    const stored = await this.#tasks.read(id)
    return isLive(stored) ? stored.task : null
  }

  #written(after: LiveTask, before: LiveTask): void {
    this.#claimer.observe(after, before)
    // The process that ends a run gives up its places.
    if (after.places.length < before.places.length) this.#places.give(before.places, before.task.lease!.token)
    // The hint is not new, so writing the task did not announce it.
    if (after.task.status === 'pending' && after.hint === before.hint) this.#hints.reannounce(after.hint!)
  }

  now(): Promise<{ at: Instant; uncertainty: number }> {
    return this.#call(() => this.#kv.now())
  }

  /** Not later than the store's clock, so that no record has a time in the future. */
  async #early(): Promise<Instant> {
    const { at, uncertainty } = await this.#kv.now()
    return Math.floor(at - uncertainty)
  }

  /** Leases are longer by `late`, so that a process with a better clock cannot take one before its holder lets go. */
  async #earlyWithMargin(): Promise<{ now: Instant; late: number }> {
    const { at, uncertainty } = await this.#kv.now()
    return { now: Math.floor(at - uncertainty), late: Math.ceil(2 * uncertainty) }
  }

  insert(insertions: readonly Insertion[], { now }: InsertOptions): Promise<Inserted[]> {
    return this.#call(async () => {
      await this.#identify()
      await this.#ended?.state.open()
      const inserted = await this.#inserter.insert(insertions, now ?? (await this.#early()))
      this.#wakeQueues(insertions.map(({ task }) => task.queue))
      return inserted
    })
  }

  claim(request: ClaimRequest): Promise<ClaimResult> {
    return this.#call(async () => {
      await this.#identify()
      const { now, late } = request.now === null ? await this.#earlyWithMargin() : { now: request.now, late: 0 }
      const isLimited = request.limits !== undefined || request.id !== undefined
      const claimer = isLimited ? this.#limitedClaimer : this.#claimer
      const claimed = await claimer.claim({ ...request, leaseTtl: request.leaseTtl + late }, now)
      if (claimed.leased.length > 0) this.#hints.claimed()
      return claimed
    })
  }

  waitingGroups(request: GroupsRequest): Promise<readonly string[]> {
    return this.#call(async () => this.#waitingGroups.find(request, request.now ?? (await this.#early())))
  }

  commit(changes: readonly Change[]): Promise<Committed[]> {
    return this.#call(async () => {
      const committed = await this.#committer.commit(changes)
      this.#maintain()
      this.#wakeQueues(changes.filter(({ set }) => set.status === 'pending').map(({ queue }) => queue))
      return committed
    })
  }

  renew(renewals: readonly Renewal[], now: Instant | null): Promise<Renewed[]> {
    return this.#call(async () => {
      if (now !== null) return this.#committer.renew(renewals, () => now)
      const { now: early, late } = await this.#earlyWithMargin()
      const read = this.#mono()
      return this.#committer.renew(
        renewals.map((renewal) => ({ ...renewal, leaseTtl: renewal.leaseTtl + late })),
        () => Math.floor(early + this.#mono() - read),
      )
    })
  }

  remove(removals: readonly Removal[]): Promise<Removed[]> {
    return this.#call(async () => {
      const now = await this.#early()
      const removed = await this.#committer.remove(removals, now)
      this.#sweep(now)
      this.#maintain()
      return removed
    })
  }

  get(ids: readonly string[]): Promise<(TaskRecord | null)[]> {
    return this.#call(() =>
      Promise.all(
        ids.map(async (id) => {
          const stored = await this.#tasks.read(id)
          if (!isLive(stored)) return null
          this.#tasks.cache.set(stored)
          return this.#tasks.withJournal(stored)
        }),
      ),
    )
  }

  find(key: string): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> {
    return this.#call(async () => this.#inserter.find(key, await this.#early()))
  }

  list(query: Query, page: Page): Promise<TaskList> {
    return this.#call(async () => ({
      tasks: await this.#queries.list(query, { ...page, now: page.now ?? (await this.#early()) }),
      stoppedAt: null,
    }))
  }

  count(query: Query, { cap, now }: CountLimits): Promise<Counted> {
    return this.#call(async () => {
      const counted = await this.#queries.count(query, cap + 1, now ?? (await this.#early()))
      return { count: Math.min(counted, cap), capped: counted > cap }
    })
  }

  wake(listener: WakeListener): () => void {
    return this.#listeners.add(listener)
  }

  #follow(isOn: boolean): void {
    this.#stopFollowing?.()
    this.#stopFollowing = isOn ? this.#hints.listen((queues) => this.#listeners.notify(queues)) : null
  }

  /** Tells the listeners of this process about its own writes. */
  #wakeQueues(queues: readonly string[]): void {
    if (queues.length > 0) this.#listeners.notify([...new Set(queues)])
  }

  /** Rejects every call once the store has been replaced by another one. */
  async #identify(): Promise<void> {
    if (this.#checkIdentity === undefined || this.#mono() - this.#identifiedAt < IDENTITY_EVERY) return
    const before = this.#identifiedAt
    // Set before the check, so that concurrent calls do not check as well.
    this.#identifiedAt = this.#mono()
    await this.#checkIdentity().catch((error: unknown) => {
      this.#identifiedAt = before
      throw error
    })
  }

  #renewedByKeeper(id: string, leaseTtl: number): void {
    const cached = this.#tasks.cache.get(id)
    if (cached === undefined || cached.task.lease === null || cached.hint === null) return
    this.#tasks.cache.delete(id)
    // Keeps claims of this process from reading the task when the lease that it knew of would have ended.
    const until = Math.max(cached.task.lease.expiresAt, cached.task.lease.claimedAt) + leaseTtl / 3
    this.#hintCache.set(cached.hint, { until, task: 'leased' })
  }

  /** Now and then, in the background. The next sweep finds what this one leaves. */
  #sweep(now: Instant): void {
    if (performance.now() - this.#sweptAt < SWEEP_EVERY) return
    this.#sweptAt = performance.now()
    const sweepAll = async (): Promise<void> => {
      this.#sweptPlaces = await sweepRegisters(this.#kv, now, this.#sweptPlaces)
      for (let round = 0; round < MOST_SWEEPS; round++) if (!(await this.#sweeper.sweep(now))) return
    }
    void this.#call(sweepAll).catch(() => {})
  }

  /** Maintains the index of ended tasks in the background. */
  #maintain(): void {
    const index = this.#ended
    if (index === null || this.#isMaintaining) return
    this.#isMaintaining = true
    void this.#call(() => index.maintain(this.#tasks))
      .catch(() => {})
      .finally(() => {
        this.#isMaintaining = false
      })
  }

  /** Closing waits for calls that are under way. */
  #call<T>(call: () => Promise<T>): Promise<T> {
    if (this.#closing !== null) return Promise.reject(new HoldfastError('STORE_CLOSED', `${this.address} is closed`))
    const answer = call()
    this.#calls.add(answer)
    const forget = (): boolean => this.#calls.delete(answer)
    answer.then(forget, forget)
    return answer
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#listeners.clear()
    this.#ended?.stop()
    await Promise.allSettled(this.#calls)
    await this.#places.finished()
    await this.#ended?.writer.close()
    await this.#hints.close()
    await this.#tasks.largeValues.finished()
    await this.#discards.finished()
    await this.#kv.close()
  }
}
