/** The embedded default: a SQLite file, served by a thread of its own. This side turns records into rows and back. */
import { randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import type { Fact } from '../../core/diagnosis.ts'
import { HoldfastError } from '../../core/errors.ts'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import { packLeases } from '../packed-leases.ts'
import { decodeWhole, encodeFresh, encodeWhole, isFresh, type Row } from '../sql/rows.ts'
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
import type { LookRows } from './claim.ts'
import { unpackClaimed } from './claimed.ts'
import { packRows } from './columns.ts'
import { encodeChanges } from './commit.ts'
import { encodeEndings } from './endings.ts'
import { asHoldfastError } from './errors.ts'
import type { Glimpse } from './glance.ts'
import type { InsertedRow, InsertRow } from './insert.ts'
import type { Call, FromThread, Notice, Reply, ThreadData, ToThread } from './protocol.ts'
import { insertInTransaction } from './transaction.ts'

export interface SqliteOptions {
  /** Make the file when there is none. Default true. */
  readonly create?: boolean
  /** Told once when the file was made. */
  readonly onCreated?: (address: string) => void
}

export const openSqlite = async (path: string, options: SqliteOptions = {}): Promise<Store> => {
  const whole = wholePath(path)
  // Beside this file, with its own ending: .ts in a checkout, .js in the package.
  const module = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)
  const data: ThreadData = { path: whole, create: options.create ?? true, identity: randomUUID() }
  const thread = new Worker(module, { workerData: data, name: 'holdfast-sqlite' })
  const opened = await new Promise<Extract<FromThread, { kind: 'opened' | 'refused' }>>((done, failed) => {
    thread.once('message', done)
    thread.once('error', failed)
  })
  if (opened.kind === 'refused') throw asError(opened.error)
  const store = new SqliteStore(whole, opened.identity, thread)
  if (opened.created) options.onCreated?.(store.address)
  return store
}

/** The folder's real path, so that two names of one file are one file. */
const wholePath = (path: string): string => {
  const whole = resolve(path)
  try {
    return join(realpathSync(dirname(whole)), basename(whole))
  } catch {
    return whole
  }
}

const asError = ({ code, message, details }: Extract<Reply, { error: unknown }>['error']): HoldfastError =>
  new HoldfastError(code, message, details)

interface Asked {
  resolve(value: unknown): void
  reject(error: HoldfastError): void
}

class SqliteStore implements Store {
  readonly capabilities: ReadonlySet<Capability> = new Set<Capability>([
    'exact-order',
    'transactions',
    'host-clock',
    'durable',
  ])
  readonly address: string
  readonly leaseTtl = 5_000
  readonly claimsAtOnce = 1
  readonly #path: string
  readonly #identity: string
  readonly #thread: Worker
  readonly #asked = new Map<number, Asked>()
  readonly #listeners = new Set<(queues: readonly string[] | null) => void>()
  readonly #reports = new Map<number, KeeperOptions['report']>()
  readonly #ended: Promise<void>
  #n = 0
  #closed = false

  constructor(path: string, identity: string, thread: Worker) {
    this.address = `sqlite:${path}`
    this.#path = path
    this.#identity = identity
    this.#thread = thread
    thread.on('message', (message: FromThread) => this.#receive(message))
    // An open store alone does not keep the process alive; a call under way does.
    thread.unref()
    this.#ended = new Promise((done) => {
      thread.once('exit', () => {
        this.#fail(
          new HoldfastError(
            this.#closed ? 'STORE_CLOSED' : 'STORE_UNAVAILABLE',
            `${this.address}: the store's thread has ended`,
          ),
        )
        done()
      })
    })
    thread.on('error', (error) =>
      this.#fail(
        new HoldfastError(
          'STORE_UNAVAILABLE',
          `${this.address}: the store's thread failed: ${error.message}`,
          {},
          error,
        ),
      ),
    )
  }

  // ── the thread ───────────────────────────────────────────────────────────────────────────────────────────────

  #ask<T>(ask: Call): Promise<T> {
    if (this.#closed) return Promise.reject(new HoldfastError('STORE_CLOSED', `${this.address} is closed`))
    return new Promise<T>((resolve, reject) => {
      const n = ++this.#n
      this.#asked.set(n, { resolve: resolve as Asked['resolve'], reject })
      if (this.#asked.size === 1) this.#thread.ref()
      this.#post({ n, ask })
    })
  }

  #post(message: ToThread | Notice): void {
    this.#thread.postMessage(message)
  }

  #receive(message: FromThread): void {
    if (message.kind === 'replies') for (const reply of message.replies) this.#reply(reply)
    else if (message.kind === 'wake') this.#ring(null)
    else if (message.kind === 'report') this.#reports.get(message.keeper)?.(message.results, message.renewedAt)
  }

  #reply(reply: Reply): void {
    const asked = this.#asked.get(reply.n)
    this.#asked.delete(reply.n)
    // Not while it closes: whoever awaits the close would end with the process, in silence.
    if (this.#asked.size === 0 && !this.#closed) this.#thread.unref()
    if ('error' in reply) asked?.reject(asError(reply.error))
    else asked?.resolve(reply.value)
  }

  #fail(error: HoldfastError): void {
    for (const { reject } of this.#asked.values()) reject(error)
    this.#asked.clear()
  }

  // ── the contract ─────────────────────────────────────────────────────────────────────────────────────────────

  async now(): Promise<{ at: Instant; uncertainty: number }> {
    return { at: await this.#ask<Instant>({ call: 'now' }), uncertainty: 0 }
  }

  async insert(insertions: readonly Insertion[], { tx, now }: InsertOptions): Promise<Inserted[]> {
    const inserting =
      tx === undefined ? this.#insert(insertions, now) : this.#insertIn(tx as DatabaseSync, insertions, now)
    // Before the reply: a claim that follows the insert on its way to the thread shares its transaction.
    this.#ring([...new Set(insertions.map(({ task }) => task.queue))])
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

  async #insertIn(tx: DatabaseSync, insertions: readonly Insertion[], now: Instant | null): Promise<Inserted[]> {
    const own = { path: this.#path, identity: this.#identity }
    return insertInTransaction(tx, own, insertions.map(encodeInsertion), now).map(decodeInserted)
  }

  async claim(want: Want): Promise<Look> {
    const { now, leased, due, next } = await this.#ask<LookRows>({ call: 'claim', want })
    const { queue, workerId, op, leaseTtl } = want
    const claimedWith = { queue, workerId, op, leaseTtl, now }
    return { leased: unpackClaimed(leased, claimedWith), due: due.map(decodeWhole), next }
  }

  async commit(changes: readonly Change[]): Promise<Committed[]> {
    const committed = (await this.#write(changes)) ?? changes.map((): Committed => 'written')
    const waiting = changes.filter(({ set }) => set.status === 'pending')
    if (waiting.length > 0) this.#ring([...new Set(waiting.map(({ queue }) => queue))])
    return committed
  }

  /** null: all were written. */
  async #write(changes: readonly Change[]): Promise<Committed[] | null> {
    const endings = encodeEndings(changes)
    if (endings !== null && (await this.#ask<boolean>({ call: 'commit-endings', endings }))) return null
    return this.#ask({ call: 'commit', changes: encodeChanges(changes) })
  }

  renew(renewals: readonly Renewal[], now: Instant | null): Promise<Renewed[]> {
    return this.#ask({ call: 'renew', renewals, now })
  }

  remove(removals: readonly Removal[]): Promise<Removed[]> {
    return this.#ask({ call: 'remove', removals })
  }

  async get(ids: readonly string[]): Promise<(TaskRecord | null)[]> {
    const rows = await this.#ask<(Row | null)[]>({ call: 'get', ids })
    return rows.map((row) => (row === null ? null : decodeWhole(row)))
  }

  async find(key: string): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> {
    const found = await this.#ask<{ key: KeyRecord; task: Row | null } | null>({ call: 'find', key })
    return found === null ? null : { key: found.key, task: found.task === null ? null : decodeWhole(found.task) }
  }

  async list(query: Query, page: Page): Promise<TaskRecord[]> {
    const rows = await this.#ask<Row[]>({ call: 'list', query, page })
    return rows.map(decodeWhole)
  }

  count(query: Query, cap: number, now: Instant | null): Promise<number> {
    return this.#ask({ call: 'count', query, cap, now })
  }

  readonly glance: Glance = {
    list: async (query, page, most) => {
      const { rows, stoppedAt } = await this.#ask<Glimpse>({ call: 'glance-list', query, page, most })
      return { tasks: rows.map(decodeWhole), stoppedAt }
    },
    count: (query, cap, most, now) => this.#ask({ call: 'glance-count', query, cap, most, now }),
    queues: (names, cap, now) => this.#ask({ call: 'glance-queues', names, cap, now }),
  }

  readonly documents: Documents = {
    get: (name) => this.#ask({ call: 'get-document', name }),
    put: (name, value, version) => this.#ask({ call: 'put-document', name, value, version }),
    list: (prefix) => this.#ask({ call: 'list-documents', prefix }),
    delete: (name, version) => this.#ask({ call: 'delete-document', name, version }),
  }

  readonly orphans: Orphans = {
    list: (page) => this.#ask({ call: 'list-orphans', ...page }),
    put: (keys, now) => this.#ask({ call: 'put-orphans', keys, now }),
  }

  wake(listener: (queues: readonly string[] | null) => void): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1 && !this.#closed) this.#post({ notice: 'watch', on: true })
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0 && !this.#closed)
        this.#post({ notice: 'watch', on: false })
    }
  }

  #ring(queues: readonly string[] | null): void {
    for (const listener of this.#listeners) listener(queues)
  }

  async examine(): Promise<readonly Fact[]> {
    if (this.#closed) throw new HoldfastError('STORE_CLOSED', `${this.address} is closed`)
    const module = new URL(import.meta.url.endsWith('.ts') ? './examiner.ts' : './examiner.js', import.meta.url)
    const examiner = new Worker(module, { workerData: { path: this.#path }, name: 'holdfast-examiner' })
    return new Promise((done, failed) => {
      examiner.once('message', done)
      examiner.once('error', (error) => failed(asHoldfastError(error, this.address)))
    })
  }

  keeper({ board, leaseTtl, every, report }: KeeperOptions): Keeper {
    const keeper = ++this.#n
    this.#reports.set(keeper, report)
    this.#post({ notice: 'keep', keeper, board: board.memory, leaseTtl, every })
    return {
      hold: (leases) => this.#post({ notice: 'hold', keeper, leases: packLeases(leases) }),
      progress: (slot, progress) => this.#post({ notice: 'progress', keeper, slot, progress }),
      close: () => {
        this.#reports.delete(keeper)
        this.#post({ notice: 'leave', keeper })
      },
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return this.#ended
    this.#closed = true
    this.#listeners.clear()
    this.#thread.ref()
    this.#post({ notice: 'close' })
    await this.#ended
  }
}

const encodeInsertion = ({ task, key }: Insertion): InsertRow => {
  const fresh = isFresh(task)
  return { row: fresh ? encodeFresh(task) : encodeWhole(task), fresh, key: key ?? null }
}

const CREATED: Inserted = { outcome: 'created' }

const decodeInserted = (inserted: InsertedRow): Inserted => {
  if (inserted === null) return CREATED
  if ('key' in inserted)
    return { outcome: 'existing', key: inserted.key, task: inserted.task === null ? null : decodeWhole(inserted.task) }
  return { outcome: 'clash', task: decodeWhole(inserted.task) }
}
