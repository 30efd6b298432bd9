/** The embedded default: a SQLite file on a separate thread. This side converts records to rows and back. */
import { randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { HoldfastError } from '../../core/errors.ts'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Fact } from '../../core/observe/diagnosis.ts'
import { weightOf } from '../../core/storage/page-weight.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import { formatInstant } from '../../core/values/instants.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { decodeWhole, encodeFresh, encodeWhole, isFresh, type Row } from '../sql/rows.ts'
import type {
  Capability,
  ClaimRequest,
  ClaimResult,
  ClockRepaired,
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
import { startThread } from '../threads/thread-file.ts'
import { WakeListeners } from '../wake-listeners.ts'
import type { ClaimedRows } from './claim/claim.ts'
import { unpackClaimed } from './claim/claimed.ts'
import { asHoldfastError } from './errors.ts'
import type { ClockMark } from './file/clock-mark.ts'
import { RestartableKeeper } from './keeper.ts'
import { inPortions, weightOfChange } from './portions.ts'
import type { Call } from './protocol.ts'
import type { ListedRows } from './read/bounded.ts'
import { codeOf } from './thread-code.ts'
import { closedError, ThreadLink } from './thread-link.ts'
import { insertInTransaction, joinedTransaction, type OwnStore } from './transaction/join.ts'
import { packRows } from './write/columns.ts'
import { commitAnswer, encodeChanges } from './write/commit.ts'
import { encodeEndings } from './write/commit-batch.ts'
import type { InsertedRow, InsertRow } from './write/insert.ts'
import { encodeJournal } from './write/journal.ts'

/** Options of `openSqlite`. */
export interface SqliteOptions {
  /** Create the file if it does not exist. Default true. */
  readonly create?: boolean
  /** Called once when the file was created. */
  readonly onCreated?: (address: string) => void
  /** Called when a process with a wrong clock has used the file. */
  readonly onWarning?: (message: string) => void
  /** Heap of the store's thread, in MiB. Default: Node's default. */
  readonly threadHeap?: number
}

const OPTIONS: ReadonlySet<string> = new Set<keyof SqliteOptions>(['create', 'onCreated', 'onWarning', 'threadHeap'])

/** Opens a store in a file. */
export const openSqlite = async (path: string, options: SqliteOptions = {}): Promise<Store> => {
  checkOptionNames(options, OPTIONS, 'sqlite')
  const { create = true, threadHeap: heap, onCreated, onWarning } = options
  const whole = wholePath(path)
  const link = await ThreadLink.open({ path: whole, create, identity: randomUUID(), heap })
  const store = new SqliteStore(whole, link)
  if (link.created) onCreated?.(store.address)
  if (link.ahead !== null) onWarning?.(aheadWarning(store.address, link.ahead))
  return store
}

const aheadWarning = (address: string, { at, by }: ClockMark): string =>
  `${address}: ${by ?? 'a process'} has used it with a clock that showed ${formatInstant(at)}, which is not believed: see \`holdfast doctor\``

/** Resolves the folder, so that two names of one file are recognised as one. */
const wholePath = (path: string): string => {
  const whole = resolve(path)
  try {
    return join(realpathSync(dirname(whole)), basename(whole))
  } catch {
    return whole
  }
}

class SqliteStore implements Store {
  readonly capabilities: ReadonlySet<Capability> = new Set<Capability>([
    'exact-order',
    'transactions',
    'host-clock',
    'due-of-all-queues',
  ])
  readonly address: string
  readonly leaseTtl = 5_000
  readonly claimsAtOnce = 1
  readonly #path: string
  readonly #link: ThreadLink
  readonly #listeners = new WakeListeners((on) => {
    if (!this.#link.isClosed) this.#link.tell({ notice: 'watch', on })
  })
  /** Restarted together with the thread. */
  readonly #keepers = new Set<RestartableKeeper>()

  constructor(path: string, link: ThreadLink) {
    this.address = `sqlite:${path}`
    this.#path = path
    this.#link = link
    link.host = { wake: () => this.#listeners.notify(null), restarted: () => this.#restarted() }
  }

  #ask<T>(ask: Call): Promise<T> {
    return this.#link.ask(ask)
  }

  #restarted(): void {
    if (this.#listeners.size > 0) this.#link.tell({ notice: 'watch', on: true })
    for (const keeper of this.#keepers) keeper.restart()
  }

  // ── the contract ─────────────────────────────────────────────────────────────────────────────────────────────

  async now(): Promise<{ at: Instant; uncertainty: number }> {
    return { at: await this.#ask<Instant>({ call: 'now' }), uncertainty: 0 }
  }

  async insert(insertions: readonly Insertion[], { tx, now }: InsertOptions): Promise<Inserted[]> {
    const inserting =
      tx === undefined
        ? inPortions(
            insertions,
            ({ task }) => weightOf(task),
            (some) => this.#insert(some, now),
          )
        : this.#insertIn(tx, insertions, now)
    // Before the reply: a claim that reaches the thread right after the insert shares its transaction.
    this.#listeners.notify([...new Set(insertions.map(({ task }) => task.queue))])
    return inserting
  }

  async #insert(insertions: readonly Insertion[], now: Instant | null): Promise<Inserted[]> {
    if (insertions.every(({ task, key }) => key === undefined && isFresh(task))) {
      const clashes = await this.#ask<InsertedRow[] | null>({
        call: 'insert-plain',
        tasks: packRows(insertions.map(({ task }) => encodeFresh(task))),
      })
      return clashes === null ? insertions.map((): Inserted => CREATED) : clashes.map(decodeInserted)
    }
    return (await this.#ask<InsertedRow[]>({ call: 'insert', rows: insertions.map(encodeInsertion), now })).map(
      decodeInserted,
    )
  }

  async #insertIn(tx: unknown, insertions: readonly Insertion[], now: Instant | null): Promise<Inserted[]> {
    return insertInTransaction(tx, this.#own, insertions.map(encodeInsertion), now).map(decodeInserted)
  }

  join(tx: unknown): JoinedTransaction {
    return joinedTransaction(tx, this.#own)
  }

  get #own(): OwnStore {
    return { path: this.#path, identity: this.#link.identity }
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const { now, leased, due, next, held } = await this.#ask<ClaimedRows>({ call: 'claim', request })
    const { queue, workerId, op, leaseTtl } = request
    const claimedWith = { queue, workerId, op, leaseTtl, now }
    return { leased: unpackClaimed(leased, claimedWith), due: due.map(decodeWhole), next, ...held }
  }

  waitingGroups(request: GroupsRequest): Promise<readonly string[]> {
    return this.#ask({ call: 'waiting-groups', request })
  }

  async commit(changes: readonly Change[]): Promise<Committed[]> {
    const committed = await inPortions(changes, weightOfChange, (some) => this.#write(some))
    const waiting = changes.filter(({ set }) => set.status === 'pending')
    if (waiting.length > 0) this.#listeners.notify([...new Set(waiting.map(({ queue }) => queue))])
    return committed
  }

  async #write(changes: readonly Change[]): Promise<readonly Committed[]> {
    const endings = encodeEndings(changes)
    if (endings !== null && (await this.#ask<boolean>({ call: 'commit-endings', endings })))
      return changes.map(() => 'written')
    return commitAnswer(changes, await this.#ask({ call: 'commit', changes: encodeChanges(changes) }))
  }

  renew(renewals: readonly Renewal[], now: Instant | null): Promise<Renewed[]> {
    return this.#ask({ call: 'renew', renewals, now })
  }

  remove(removals: readonly Removal[]): Promise<Removed[]> {
    return this.#ask({ call: 'remove', removals })
  }

  async get(ids: readonly string[]): Promise<(TaskRecord | null)[]> {
    const tasks: (TaskRecord | null)[] = []
    do {
      // A reply contains as many tasks as fit into the thread's heap.
      const rows = await this.#ask<(Row | null)[]>({ call: 'get', ids: ids.slice(tasks.length) })
      for (const row of rows) tasks.push(row === null ? null : decodeWhole(row))
    } while (tasks.length < ids.length)
    return tasks
  }

  async find(key: string): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> {
    const found = await this.#ask<{ key: KeyRecord; task: Row | null } | null>({ call: 'find', key })
    return found === null ? null : { key: found.key, task: found.task === null ? null : decodeWhole(found.task) }
  }

  async list(query: Query, page: Page): Promise<TaskList> {
    const { rows, stoppedAt } = await this.#ask<ListedRows>({ call: 'list', query, page })
    return { tasks: rows.map(decodeWhole), stoppedAt }
  }

  count(query: Query, limits: CountLimits): Promise<Counted> {
    return this.#ask({ call: 'count', query, limits })
  }

  countQueues(names: readonly string[], cap: number, now: Instant | null): Promise<QueueCounts[]> {
    return this.#ask({ call: 'count-queues', names, cap, now })
  }

  readonly documents: Documents = {
    get: (name) => this.#ask({ call: 'get-document', name }),
    put: (name, value, version) => this.#ask({ call: 'put-document', name, value, version }),
    list: (prefix) => this.#ask({ call: 'list-documents', prefix }),
    delete: (name, version) => this.#ask({ call: 'delete-document', name, version }),
  }

  readonly detachedKeys: DetachedKeys = {
    list: (page) => this.#ask({ call: 'list-detached-keys', ...page }),
    put: (keys, now) => this.#ask({ call: 'put-detached-keys', keys, now }),
  }

  wake(listener: WakeListener): () => void {
    return this.#listeners.add(listener)
  }

  async examine(): Promise<readonly Fact[]> {
    if (this.#link.isClosed) throw closedError(this.address)
    const examiner = startThread(await codeOf('examiner', this.#path), 'holdfast-examiner', { path: this.#path })
    return new Promise((done, failed) => {
      examiner.once('message', done)
      examiner.once('error', (error) => failed(asHoldfastError(error, this.address)))
      examiner.once('exit', () =>
        failed(new HoldfastError('STORE_UNAVAILABLE', `${this.address}: the thread that examines it has ended`)),
      )
    })
  }

  repairClock(): Promise<ClockRepaired> {
    return this.#ask({ call: 'repair-clock' })
  }

  acceptRestore(): Promise<number> {
    return this.#ask({ call: 'accept-restore' })
  }

  keeper(options: KeeperOptions): Keeper {
    const keeper = new RestartableKeeper(this.#link, options)
    this.#keepers.add(keeper)
    return {
      claiming: (op, ticket, since) => keeper.claiming(op, ticket, since),
      hold: (leases, since) => keeper.hold(leases, since),
      progress: (slot, progress) => keeper.progress(slot, progress),
      reportNow: () => keeper.reportNow(),
      close: () => {
        this.#keepers.delete(keeper)
        keeper.close()
      },
    }
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    await this.#link.close()
  }
}

const encodeInsertion = ({ task, key, replaces }: Insertion): InsertRow => {
  const fresh = isFresh(task)
  return {
    row: fresh ? encodeFresh(task) : encodeWhole(task),
    fresh,
    journal: encodeJournal(task.journal),
    key: key ?? null,
    replaces: replaces ?? null,
  }
}

const CREATED: Inserted = { outcome: 'created' }

const decodeInserted = (inserted: InsertedRow): Inserted => {
  if (inserted === null) return CREATED
  if ('key' in inserted)
    return { outcome: 'existing', key: inserted.key, task: inserted.task === null ? null : decodeWhole(inserted.task) }
  return { outcome: 'clash', task: decodeWhole(inserted.task) }
}
