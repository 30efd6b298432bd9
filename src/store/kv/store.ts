/** The engine for stores that are versioned keys: the whole contract on get, create, compare-and-set, delete and ordered lists. */
import type { Fact } from '../../core/diagnosis.ts'
import { HoldfastError } from '../../core/errors.ts'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import type {
  Capability,
  Committed,
  Documents,
  Inserted,
  Insertion,
  InsertOptions,
  Keeper,
  KeeperOptions,
  Look,
  Orphans,
  Page,
  Query,
  Removal,
  Removed,
  Renewal,
  Renewed,
  Store,
  Want,
} from '../store.ts'
import { Bulletins } from './bulletins.ts'
import { Looker } from './claim.ts'
import { Committer } from './commit.ts'
import { Discards } from './discards.ts'
import { KvDocuments } from './documents.ts'
import { Inserter } from './insert.ts'
import { keptElsewhere } from './kept-elsewhere.ts'
import type { KeyValue } from './key-value.ts'
import { Keys } from './keys.ts'
import { KvOrphans } from './orphans.ts'
import { Queries } from './query.ts'
import { SteadyKeyValue } from './steady.ts'
import { type MakeSurveyor, Surveyor } from './survey.ts'
import { Sweeper } from './sweep.ts'
import { isLiving, Tasks } from './tasks.ts'

export interface KvOptions {
  readonly capabilities: readonly Capability[]
  readonly leaseTtl: number
  /** Rejects when this is not the store any more that was opened. Asked now and then. */
  readonly checkIdentity?: () => Promise<void>
  readonly examine?: () => Promise<readonly Fact[]>
  /** Renews leases on another thread. */
  readonly keeper?: (options: KeeperOptions) => Keeper
  /** Monotonic milliseconds: for tests that hold time in their hands. */
  readonly mono?: () => number
  /** Default: lists them. */
  readonly surveyor?: MakeSurveyor
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
  readonly orphans: Orphans
  readonly examine?: () => Promise<readonly Fact[]>
  readonly keeper?: (options: KeeperOptions) => Keeper
  readonly #kv: SteadyKeyValue
  readonly #discards: Discards
  readonly #tasks: Tasks
  readonly #inserter: Inserter
  readonly #committer: Committer
  readonly #looker: Looker
  readonly #queries: Queries
  readonly #sweeper: Sweeper
  readonly #listeners = new Set<(queues: readonly string[] | null) => void>()
  readonly #calls = new Set<Promise<unknown>>()
  #closing: Promise<void> | null = null
  #sweptAt = Number.NEGATIVE_INFINITY
  readonly #checkIdentity: (() => Promise<void>) | undefined
  readonly #mono: () => number
  #identifiedAt: number

  constructor(
    kv: KeyValue,
    { capabilities, leaseTtl, surveyor, checkIdentity, examine, keeper, mono = () => performance.now() }: KvOptions,
  ) {
    this.#checkIdentity = checkIdentity
    if (examine !== undefined) this.examine = () => this.#call(examine)
    if (keeper !== undefined)
      this.keeper = (own) => keptElsewhere(keeper, own, (id) => this.#renewedElsewhere(id, own.leaseTtl))
    this.#mono = mono
    this.#identifiedAt = mono()
    this.capabilities = new Set(capabilities)
    this.address = kv.address
    this.leaseTtl = leaseTtl
    this.#kv = new SteadyKeyValue(kv)
    this.#discards = new Discards(this.#kv)
    this.#tasks = new Tasks(this.#kv, this.#discards)
    const keys = new Keys(this.#kv)
    const now = (): Promise<Instant> => this.#early()
    this.#inserter = new Inserter(this.#kv, this.#tasks, keys, now)
    // Only looks that list see what lies beside the hints.
    const bulletins = surveyor === undefined ? new Bulletins(this.#kv, mono) : null
    const listing = {
      hintsIn: (key: string) => this.#discards.hintsIn(key),
      listed: (prefix: string, keys: readonly string[]) => bulletins?.listed(prefix, keys),
    }
    this.#looker = new Looker(
      this.#tasks,
      () => this.#committer,
      (key) => this.#discards.has(key),
      surveyor ?? ((memory, isTaken) => new Surveyor(this.#kv, memory, isTaken, listing)),
    )
    this.#committer = new Committer(this.#kv, this.#tasks, keys, this.#looker.noticed)
    this.#queries = new Queries(this.#kv, this.#tasks)
    this.#sweeper = new Sweeper(this.#kv, this.#tasks, keys, this.#discards)
    const guard: Guard = (call) => this.#call(call)
    this.documents = guardedDocuments(new KvDocuments(this.#kv, now, bulletins), guard)
    this.orphans = guardedOrphans(new KvOrphans(this.#kv, this.#tasks, keys, now), guard)
  }

  now(): Promise<{ at: Instant; uncertainty: number }> {
    return this.#call(() => this.#kv.now())
  }

  /** No later than the store's clock: what is stamped with it is never in the future. */
  async #early(): Promise<Instant> {
    const { at, uncertainty } = await this.#kv.now()
    return Math.floor(at - uncertainty)
  }

  /** For leases: by `late` they must be longer, so that nobody whose clock is better can take one before its holder lets go. */
  async #lasting(): Promise<{ now: Instant; late: number }> {
    const { at, uncertainty } = await this.#kv.now()
    return { now: Math.floor(at - uncertainty), late: Math.ceil(2 * uncertainty) }
  }

  insert(insertions: readonly Insertion[], { now }: InsertOptions): Promise<Inserted[]> {
    return this.#call(async () => {
      await this.#identify()
      const inserted = await this.#inserter.insert(insertions, now ?? (await this.#early()))
      this.#ring(insertions.map(({ task }) => task.queue))
      return inserted
    })
  }

  claim(want: Want): Promise<Look> {
    return this.#call(async () => {
      await this.#identify()
      if (want.now !== null) return this.#looker.look(want, want.now)
      const { now, late } = await this.#lasting()
      return this.#looker.look({ ...want, leaseTtl: want.leaseTtl + late }, now)
    })
  }

  commit(changes: readonly Change[]): Promise<Committed[]> {
    return this.#call(async () => {
      const committed = await this.#committer.commit(changes)
      this.#ring(changes.filter(({ set }) => set.status === 'pending').map(({ queue }) => queue))
      return committed
    })
  }

  renew(renewals: readonly Renewal[], now: Instant | null): Promise<Renewed[]> {
    return this.#call(async () => {
      if (now !== null) return this.#committer.renew(renewals, now)
      const { now: early, late } = await this.#lasting()
      return this.#committer.renew(
        renewals.map((renewal) => ({ ...renewal, leaseTtl: renewal.leaseTtl + late })),
        early,
      )
    })
  }

  remove(removals: readonly Removal[]): Promise<Removed[]> {
    return this.#call(async () => {
      const now = await this.#early()
      const removed = await this.#committer.remove(removals, now)
      this.#sweep(now)
      return removed
    })
  }

  get(ids: readonly string[]): Promise<(TaskRecord | null)[]> {
    return this.#call(() =>
      Promise.all(
        ids.map(async (id) => {
          const kept = await this.#tasks.read(id)
          if (!isLiving(kept)) return null
          this.#tasks.held.set(kept)
          return kept.task
        }),
      ),
    )
  }

  find(key: string): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> {
    return this.#call(async () => this.#inserter.find(key, await this.#early()))
  }

  list(query: Query, page: Page): Promise<TaskRecord[]> {
    return this.#call(async () => this.#queries.list(query, { ...page, now: page.now ?? (await this.#early()) }))
  }

  count(query: Query, cap: number, now: Instant | null): Promise<number> {
    return this.#call(async () => this.#queries.count(query, cap, now ?? (await this.#early())))
  }

  wake(listener: (queues: readonly string[] | null) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #ring(queues: readonly string[]): void {
    if (queues.length === 0) return
    const rung = [...new Set(queues)]
    for (const listener of this.#listeners) listener(rung)
  }

  /** Whoever works on must work on the same store; once it was another, every call is refused. */
  async #identify(): Promise<void> {
    if (this.#checkIdentity === undefined || this.#mono() - this.#identifiedAt < IDENTITY_EVERY) return
    const before = this.#identifiedAt
    // At once, so that calls beside this one do not all ask.
    this.#identifiedAt = this.#mono()
    await this.#checkIdentity().catch((error: unknown) => {
      this.#identifiedAt = before
      throw error
    })
  }

  #renewedElsewhere(id: string, leaseTtl: number): void {
    const held = this.#tasks.held.get(id)
    if (held === undefined || held.task.lease === null || held.hint === null) return
    this.#tasks.held.delete(id)
    // So that no look of ours reads it when the lease that we knew would have ended.
    const until = Math.max(held.task.lease.expiresAt, held.task.lease.claimedAt) + leaseTtl / 3
    this.#looker.memory.set(held.hint, { until, task: 'leased' })
  }

  /** Now and then, beside other work: what it leaves the next one finds. */
  #sweep(now: Instant): void {
    if (performance.now() - this.#sweptAt < SWEEP_EVERY) return
    this.#sweptAt = performance.now()
    const sweepAll = async (): Promise<void> => {
      for (let round = 0; round < MOST_SWEEPS; round++) if (!(await this.#sweeper.sweep(now))) return
    }
    void this.#call(sweepAll).catch(() => {})
  }

  /** Answered also when close comes meanwhile. */
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
    await Promise.allSettled(this.#calls)
    await this.#discards.settled()
    await this.#kv.close()
  }
}

type Guard = <T>(call: () => Promise<T>) => Promise<T>

const guardedDocuments = (documents: Documents, call: Guard): Documents => ({
  get: (name) => call(() => documents.get(name)),
  put: (name, value, version) => call(() => documents.put(name, value, version)),
  list: (prefix) => call(() => documents.list(prefix)),
  delete: (name, version) => call(() => documents.delete(name, version)),
})

const guardedOrphans = (orphans: Orphans, call: Guard): Orphans => ({
  list: (page) => call(() => orphans.list(page)),
  put: (keys, now) => call(() => orphans.put(keys, now)),
})
