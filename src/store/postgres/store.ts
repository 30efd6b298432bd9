/** PostgreSQL: the store for more than one machine. */
import type { Pool } from 'pg'
import type { Fact } from '../../core/diagnosis.ts'
import type { Duration } from '../../core/durations.ts'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import type {
  Capability,
  Committed,
  Documents,
  Glance,
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
import { startKeeper } from '../threaded-keeper.ts'
import { CLOCK, Claimer } from './claim.ts'
import { Committer } from './commit.ts'
import { Connections, connectionConfig, type Executor, type Manners, type Value } from './connection.ts'
import { postgresDocuments } from './documents.ts'
import { asHoldfastError } from './errors.ts'
import { examine } from './examine.ts'
import { postgresGlance } from './glance.ts'
import { IdentityGuard } from './identity.ts'
import { type Into, insertAll, insertKeyless } from './insert.ts'
import type { KeeperPlace } from './keeper.ts'
import { checkSettings, mannersOf, type Place, placeOf, prepareSchema, schemaOf } from './opening.ts'
import { postgresOrphans } from './orphans.ts'
import { countTasks, findKeys, getTasks, listTasks } from './query.ts'
import { renewLeases } from './renew.ts'
import { Settled } from './settled.ts'
import { joinTransaction } from './transaction.ts'
import { Wake } from './wake.ts'

export interface PostgresOptions {
  /** The schema with Holdfast's tables. Default: what `?schema=` in the address says, else 'holdfast'. */
  readonly schema?: string
  /** Make the schema when there is none. Default false. */
  readonly create?: boolean
  /** Bring an older schema up to date on connecting. Default true; false for applications without the right to. */
  readonly migrate?: boolean
  /** LISTEN for wake-ups. Default true; false behind PgBouncer in transaction mode. */
  readonly listen?: boolean
  /** Use named prepared statements. Default true; false behind PgBouncer in transaction mode. */
  readonly prepare?: boolean
  /** Connections of the pool. Default 6. */
  readonly max?: number
  /** After this long without an answer a statement is given up. Default 15 s; connecting has at most 5 s. */
  readonly queryTimeout?: Duration
  /** Your own pool, used instead of one of Holdfast's. It is not closed with the client. */
  readonly pool?: Pool
  readonly onCreated?: () => void
  /** Told when the server's settings endanger what is promised. */
  readonly onWarning?: (message: string) => void
}

export const openPostgres = async (url: string | null, options: PostgresOptions = {}): Promise<Store> => {
  const schema = schemaOf(url, options.schema)
  const manners = mannersOf(options)
  const { pool, max = 6, listen = true } = options
  const place = placeOf(url, pool)
  const guard = new IdentityGuard(schema)
  const connections = pool
    ? new Connections(pool, place.address, { ...manners, isOurs: false, guard })
    : await Connections.open(place.config, place.address, { ...manners, max, guard })
  try {
    await checkSettings(connections, options)
    const identity = await prepareSchema(connections, schema, options)
    guard.expect(identity)
    return new PostgresStore({ connections, schema, identity, place, manners, listen })
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
  readonly manners: Manners
  readonly listen: boolean
}

const SWEEP_EVERY = 60_000

class PostgresStore implements Store {
  readonly capabilities: ReadonlySet<Capability> = new Set<Capability>(['exact-order', 'transactions', 'durable'])
  readonly address: string
  readonly leaseTtl = 5_000
  readonly claimsAtOnce = 2
  readonly glance: Glance
  readonly documents: Documents
  readonly orphans: Orphans
  /** Only where the thread can open a connection like ours. */
  readonly keeper?: (options: KeeperOptions) => Keeper
  readonly #connections: Connections
  readonly #schema: string
  readonly #identity: string
  readonly #claimer: Claimer
  readonly #committer: Committer
  readonly #wake: Wake
  readonly #settled = new Settled()
  #sweptAt = performance.now()

  constructor({ connections, schema, identity, place, manners, listen }: Opened) {
    this.address = place.address
    this.#connections = connections
    this.#schema = schema
    this.#identity = identity
    this.#claimer = new Claimer(connections.asExecutor(), schema)
    this.#committer = new Committer(connections, schema)
    this.glance = postgresGlance(() => this.#executor(), schema)
    this.documents = postgresDocuments(connections, schema)
    this.orphans = postgresOrphans(connections, schema)
    const { portable } = place
    if (portable !== null) {
      const keeperPlace: KeeperPlace = { config: portable, schema, manners }
      const thread = { beside: import.meta.url, name: 'holdfast-postgres', place: keeperPlace }
      this.keeper = (own) => startKeeper(thread, own)
    }
    this.#wake = new Wake(
      connections,
      `holdfast_${schema.replaceAll('"', '')}`,
      listen ? connectionConfig(place.config, 'holdfast listen', manners) : null,
    )
  }

  async now(): Promise<{ at: Instant; uncertainty: number }> {
    const [row] = await this.#query(`with ${CLOCK} select now from clock`, [null])
    return { at: row![0] as number, uncertainty: 1 }
  }

  async insert(insertions: readonly Insertion[], { tx, now }: InsertOptions): Promise<Inserted[]> {
    const queues = [...new Set(insertions.map(({ task }) => task.queue))]
    if (tx !== undefined) return this.#insertInTransaction(tx, insertions, now, queues)
    const keyed = insertions.some(({ key }) => key !== undefined)
    const notice = this.#wake.begin(queues)
    const into = this.#into(notice.queues)
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
      this.#claimer.startOver()
      notice.end()
    }
  }

  /** The notice is part of the caller's transaction, so it comes when that commits. */
  async #insertInTransaction(
    tx: unknown,
    insertions: readonly Insertion[],
    now: Instant | null,
    queues: readonly string[],
  ): Promise<Inserted[]> {
    try {
      const executor = await joinTransaction(tx, this.#schema, this.#identity)
      return await insertAll(executor, this.#into(queues), insertions, now)
    } catch (error) {
      throw asHoldfastError(error, this.address)
    }
  }

  #into(queues: readonly string[]): Into {
    return { schema: this.#schema, channel: this.#wake.channel, queues }
  }

  claim(want: Want): Promise<Look> {
    return this.#claimer.look(want)
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

  /** Keys that outlived their task and then their own time. */
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

  async list(query: Query, page: Page): Promise<TaskRecord[]> {
    return listTasks(this.#executor(), this.#schema, query, page)
  }

  async count(query: Query, cap: number, now: Instant | null): Promise<number> {
    return countTasks(this.#executor(), this.#schema, query, cap, now)
  }

  examine(): Promise<readonly Fact[]> {
    return examine(this.#executor(), this.#schema)
  }

  settledUntil(): Promise<Instant> {
    return this.#settled.until(this.#executor())
  }

  wake(listener: (queues: readonly string[] | null) => void): () => void {
    return this.#wake.on(listener)
  }

  async close(): Promise<void> {
    this.#wake.close()
    await this.#connections.close()
  }

  #executor(): Executor {
    return this.#connections.asExecutor()
  }

  #query(text: string, values: readonly Value[]): ReturnType<Connections['query']> {
    return this.#connections.query(text, values)
  }
}

/** Not only later: what was released may stand before all others. */
const isReady = ({ set, entry }: Change): boolean => set.availableAt === undefined || set.availableAt <= entry.at
