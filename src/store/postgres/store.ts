/** PostgreSQL: the store for more than one machine. */
import type { Pool } from 'pg'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Fact } from '../../core/observe/diagnosis.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import type { Duration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { countLater, laterWithout } from '../sql/waiting.ts'
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
  JoinedTransaction,
  Keeper,
  KeeperOptions,
  Page,
  Query,
  QueueCounts,
  Removal,
  Removed,
  Renewal,
  Renewed,
  Store,
  TaskList,
  WakeListener,
} from '../store.ts'
import { threadedKeeper } from '../threads/threaded-keeper.ts'
import { addressSettings } from './address-settings.ts'
import { CLOCK, Claimer, readClock } from './claim/claimer.ts'
import { type ConnectionPolicy, Connections, connectionConfig, type Executor, type Value } from './connection.ts'
import { asHoldfastError } from './errors.ts'
import { examine } from './examine.ts'
import { IdentityGuard } from './identity.ts'
import type { KeeperPlace } from './keeper.ts'
import {
  checkSchema,
  checkSettings,
  connectionPolicyOf,
  type Place,
  placeOf,
  poolSizeOf,
  prepareSchema,
} from './opening.ts'
import { type PasswordServer, servePasswords } from './password-channel.ts'
import { countBounded, countQueues, listBounded } from './read/bounded.ts'
import { postgresDetachedKeys } from './read/detached-keys.ts'
import { postgresDocuments } from './read/documents.ts'
import { OpenTransactions } from './read/open-transactions.ts'
import { countTasks, findKeys, getTasks, listTasks } from './read/query.ts'
import { acceptRestore } from './schema.ts'
import { joinedTransaction, joinTransaction } from './transaction/join.ts'
import { Wake } from './wake/listener.ts'
import { Committer } from './write/commit.ts'
import { type Into, insertAll, insertKeyless } from './write/insert.ts'
import { renewLeases } from './write/renew.ts'

/** Options of `openPostgres`. */
export interface PostgresOptions {
  /** The schema with Holdfast's tables. Default 'holdfast'. This and `listen`, `prepare` and `max` may also be settings of the address. */
  readonly schema?: string
  /** Create the schema if it does not exist. Default false. */
  readonly create?: boolean
  /** Migrate an older schema on connect. Default true; use false for applications without the privilege. */
  readonly migrate?: boolean
  /** LISTEN for wake-ups. Default true; false behind PgBouncer in transaction mode. */
  readonly listen?: boolean
  /** Use named prepared statements. Default true; false behind PgBouncer in transaction mode. */
  readonly prepare?: boolean
  /** The size of the pool. Default 6. */
  readonly max?: number
  /** How long to wait for the reply to a statement. Default 15 s. Connecting takes at most 5 s. */
  readonly queryTimeout?: Duration
  /** Your own pool, used instead of Holdfast's. It is not closed with the client. */
  readonly pool?: Pool
  /** Called when there was no store and one was created. */
  readonly onCreated?: () => void
  /** Called if the server's settings put durability at risk. */
  readonly onWarning?: (message: string) => void
}

const OPTIONS: ReadonlySet<string> = new Set<keyof PostgresOptions>([
  'schema',
  'create',
  'migrate',
  'listen',
  'prepare',
  'max',
  'queryTimeout',
  'pool',
  'onCreated',
  'onWarning',
])

/** Opens a store in a schema of PostgreSQL. */
export const openPostgres = async (url: string | null, given: PostgresOptions = {}): Promise<Store> => {
  checkOptionNames(given, OPTIONS, 'postgres')
  // An option that is undefined is not given.
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as PostgresOptions
  const settings = addressSettings(url)
  const options = { ...settings, ...set }
  const schema = checkSchema(options.schema ?? 'holdfast')
  const policy = connectionPolicyOf(options)
  const { pool, listen = true } = options
  const max = poolSizeOf(options)
  const place = placeOf(url, pool)
  const guard = new IdentityGuard(schema)
  const connections = pool
    ? new Connections(pool, place.address, { ...policy, isOurs: false, guard })
    : await Connections.open(place.config, place.address, { ...policy, max, guard })
  try {
    await checkSettings(connections, options)
    const isOfAddress = settings.schema !== undefined && set.schema === undefined
    const identity = await prepareSchema(connections, place.address, schema, options, isOfAddress)
    await guard.expect(connections.asExecutor())
    return new PostgresStore({ connections, schema, identity, place, policy, listen, onWarning: options.onWarning })
  } catch (error) {
    await connections.close()
    throw error
  }
}

interface Opened {
  readonly connections: Connections
  readonly schema: string
  readonly identity: string
  readonly place: Place
  readonly policy: ConnectionPolicy
  readonly listen: boolean
  readonly onWarning: PostgresOptions['onWarning']
}

const SWEEP_EVERY = 60_000

class PostgresStore implements Store {
  readonly capabilities: ReadonlySet<Capability> = new Set<Capability>([
    'exact-order',
    'transactions',
    'due-of-all-queues',
  ])
  readonly address: string
  readonly leaseTtl = 5_000
  readonly claimsAtOnce = 2
  readonly documents: Documents
  readonly detachedKeys: DetachedKeys
  /** Present only if the thread can open a connection like ours. */
  readonly keeper?: (options: KeeperOptions) => Keeper
  readonly #connections: Connections
  readonly #schema: string
  readonly #identity: string
  readonly #claimer: Claimer
  readonly #committer: Committer
  readonly #wake: Wake
  readonly #openTransactions = new OpenTransactions()
  readonly #passwords: PasswordServer | null
  #sweptAt = performance.now()

  constructor({ connections, schema, identity, place, policy, listen, onWarning }: Opened) {
    this.address = place.address
    this.#connections = connections
    this.#schema = schema
    this.#identity = identity
    this.#claimer = new Claimer(connections.asExecutor(), schema, patienceOf(policy))
    this.#committer = new Committer(connections, schema)
    this.documents = postgresDocuments(connections, schema)
    this.detachedKeys = postgresDetachedKeys(connections, schema)
    const { portable, password } = place
    this.#passwords = password === null ? null : servePasswords(password)
    const passwords = this.#passwords?.channel ?? null
    const keeper = threadedKeeper<KeeperPlace>(
      {
        beside: import.meta.url,
        name: 'holdfast-postgres',
        place: { config: portable, schema, policy, passwords },
        settings: 'the settings of the pool (ssl, stream)',
        keepsClaims: 'by-op',
      },
      onWarning,
    )
    if (keeper !== undefined) this.keeper = keeper
    this.#wake = new Wake(
      connections,
      `holdfast_${schema.replaceAll('"', '')}`,
      listen ? connectionConfig(place.config, 'holdfast listen', policy) : null,
    )
  }

  async now(): Promise<{ at: Instant; uncertainty: number }> {
    return readClock(this.#executor())
  }

  async insert(insertions: readonly Insertion[], { tx, now, expected: given }: InsertOptions): Promise<Inserted[]> {
    const expected = given ?? null
    const queues = [...new Set(insertions.map(({ task }) => task.queue))]
    if (tx !== undefined) return this.#insertInTransaction(tx, insertions, now, this.#into(queues, expected))
    // The rows of a key or a journal are written with the task or not at all.
    const keyed = insertions.some(({ key, task }) => key !== undefined || task.hasJournal)
    const notice = this.#wake.begin(queues)
    const into = this.#into(notice.queues, expected)
    try {
      return keyed
        ? await this.#connections.transaction((executor) => insertAll(executor, into, insertions, now))
        : await this.#connections.repeatable((executor) =>
            insertKeyless(
              executor,
              into,
              insertions.map(({ task }) => task),
            ),
          )
    } finally {
      this.#claimer.startOver(insertions.map(({ task }) => task))
      notice.end()
    }
  }

  /** The notification is part of the caller's transaction, so it is sent when that commits. */
  async #insertInTransaction(
    tx: unknown,
    insertions: readonly Insertion[],
    now: Instant | null,
    into: Into,
  ): Promise<Inserted[]> {
    try {
      const executor = await joinTransaction(tx, this.#schema, this.#identity)
      return await insertAll(executor, into, insertions, now)
    } catch (error) {
      throw asHoldfastError(error, this.address)
    }
  }

  #into(queues: readonly string[], expected: Instant | null): Into {
    return { schema: this.#schema, channel: this.#wake.channel, queues, expected }
  }

  join(tx: unknown): JoinedTransaction {
    return joinedTransaction(tx, { schema: this.#schema, identity: this.#identity, address: this.address })
  }

  claim(want: ClaimRequest): Promise<ClaimResult> {
    return this.#claimer.look(want)
  }

  isCongested(): boolean {
    return this.#claimer.isCongested
  }

  waitingGroups(request: GroupsRequest): Promise<readonly string[]> {
    return this.#claimer.waitingGroups(request)
  }

  async commit(changes: readonly Change[]): Promise<Committed[]> {
    const committed = await this.#committer.commit(changes)
    const waiting = changes.filter(({ set }) => set.status === 'pending')
    if (waiting.some(isReady)) this.#claimer.startOver()
    if (waiting.length > 0) this.#wake.ring([...new Set(waiting.map(({ queue }) => queue))])
    return committed
  }

  async renew(renewals: readonly Renewal[], now: Instant | null): Promise<Renewed[]> {
    return renewLeases(this.#executor(), this.#schema, renewals, now)
  }

  async remove(removals: readonly Removal[]): Promise<Removed[]> {
    const removed = await this.#committer.remove(removals)
    await this.#sweepKeys()
    return removed
  }

  /** Removes expired keys whose task is gone. */
  async #sweepKeys(): Promise<void> {
    if (performance.now() - this.#sweptAt < SWEEP_EVERY) return
    this.#sweptAt = performance.now()
    await this.#query(
      `with ${CLOCK} delete from ${this.#schema}.key where key in (select key from ${this.#schema}.key where orphan and expires_at <= (select now from clock) limit 1000)`,
      [null],
    )
  }

  async get(ids: readonly string[]): Promise<(TaskRecord | null)[]> {
    return getTasks(this.#executor(), this.#schema, ids)
  }

  async find(key: string): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> {
    return (await findKeys(this.#executor(), this.#schema, [key]))[0] ?? null
  }

  async list(query: Query, page: Page): Promise<TaskList> {
    const { maxScanned } = page
    if (maxScanned !== undefined) return listBounded(this.#executor(), this.#schema, query, page, maxScanned)
    return { tasks: await listTasks(this.#executor(), this.#schema, query, page), stoppedAt: null }
  }

  async count(query: Query, { cap, maxScanned, now }: CountLimits): Promise<Counted> {
    if (maxScanned !== undefined) return countBounded(this.#executor(), this.#schema, query, cap, maxScanned, now)
    const later = countLater(query, (one) => this.count(one, { cap, now }))
    if (later !== null) return laterWithout(await later.all, await later.parked)
    const counted = await countTasks(this.#executor(), this.#schema, query, cap + 1, now)
    return { count: Math.min(counted, cap), capped: counted > cap }
  }

  countQueues(names: readonly string[], cap: number, now: Instant | null): Promise<QueueCounts[]> {
    return countQueues(this.#executor(), this.#schema, names, cap, now)
  }

  examine(): Promise<readonly Fact[]> {
    return examine(this.#executor(), this.#schema)
  }

  /** The last call on this store object, because the identity that it expects has changed. */
  acceptRestore(): Promise<number> {
    return this.#connections.transaction((executor) => acceptRestore(executor, this.#schema))
  }

  visibleUntil(): Promise<Instant> {
    return this.#openTransactions.visibleUntil(this.#executor())
  }

  wake(listener: WakeListener): () => void {
    return this.#wake.on(listener)
  }

  async close(): Promise<void> {
    this.#wake.close()
    this.#passwords?.close()
    await this.#connections.close()
  }

  #executor(): Executor {
    return this.#connections.asExecutor()
  }

  #query(text: string, values: readonly Value[]): ReturnType<Connections['query']> {
    return this.#connections.query(text, values)
  }
}

/** True if the task is ready at once. A released task may even be first in its queue. */
const isReady = ({ set, entry }: Change): boolean => set.availableAt === undefined || set.availableAt <= entry.at

/** The wait for a lock ends before the statement does, so that it is known that nothing was leased. */
const patienceOf = ({ deadlines }: ConnectionPolicy): number => Math.ceil(deadlines.query * 0.8)
