/** The file behind the thread: runs calls, and lets calls that wait together share one transaction and its fsync. */
import type { DatabaseSync } from 'node:sqlite'
import { HoldfastError } from '../../core/errors.ts'
import type { Row } from '../sql/rows.ts'
import { claimRows, idleLook } from './claim.ts'
import type { HostClock } from './clock.ts'
import { mono } from './clock.ts'
import { commitRows, removeRow, renewRow, sweepKeys } from './commit.ts'
import { fileIdentity, prepared } from './connection.ts'
import { Tally } from './counts.ts'
import { deleteDocument, getDocument, listDocuments, putDocument } from './documents.ts'
import { commitEndings } from './endings.ts'
import { asHoldfastError, isBusy } from './errors.ts'
import { glanceCount, glanceList, glanceQueues } from './glance.ts'
import { insertPlain, insertRow } from './insert.ts'
import { listOrphans, putOrphan } from './orphans.ts'
import type { ReadCall, WriteCall } from './protocol.ts'
import { countRows, findKey, getRow, listStep } from './query.ts'
import { writeMeta } from './schema.ts'

export interface Write {
  readonly ask: WriteCall
  readonly since: number
  done(value: unknown): void
  failed(error: HoldfastError): void
}

/** How long a call may wait for the file's write lock. */
const PATIENCE = 10_000
const HOUSE_EVERY = 1_000

export class Engine {
  readonly #db: DatabaseSync
  readonly #path: string
  readonly #clock: HostClock
  /** Which files these were when they were opened. */
  readonly #opened: string
  readonly #tally = new Tally()
  readonly #writes: Write[] = []
  #flushing: NodeJS.Immediate | NodeJS.Timeout | null = null
  #keptHouseAt = 0
  #committedAt = Number.NEGATIVE_INFINITY
  #lost: HoldfastError | null = null

  constructor(db: DatabaseSync, path: string, clock: HostClock) {
    this.#db = db
    this.#path = path
    this.#clock = clock
    this.#opened = this.#files()
  }

  // ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────

  write(write: Write): void {
    this.#writes.push(write)
    // An immediate, so that every call that has arrived by now is in the same transaction.
    this.#flushing ??= setImmediate(() => this.flush())
  }

  flush(): void {
    this.#flushing = null
    const turn = this.#writes.splice(0)
    if (turn.length === 0) return
    try {
      this.#mustBeHere()
      const writing = this.#answerIdleLooks(turn)
      if (writing.length > 0) this.#transact(writing)
    } catch (error) {
      if (isBusy(error)) this.#waitForLock(turn)
      else for (const { failed } of turn) failed(this.#asError(error))
    }
  }

  /** A look that finds nothing to lease needs no lock. */
  #answerIdleLooks(turn: readonly Write[]): readonly Write[] {
    if (turn.some(({ ask }) => ask.call !== 'claim')) return turn
    return turn.filter(({ ask, done }) => {
      if (ask.call !== 'claim') return true
      const now = ask.want.now ?? this.#clock.now()
      const answer = idleLook(this.#db, ask.want, now)
      if (answer !== null) done(answer)
      return answer === null
    })
  }

  #transact(turn: readonly Write[]): void {
    this.#db.exec('begin immediate')
    let results: unknown[]
    try {
      results = turn.map(({ ask }) => this.#run(ask))
      this.#tally.write(this.#db)
      this.#keepHouse()
      this.#db.exec('commit')
      this.#committedAt = mono()
    } catch (error) {
      this.#rollback()
      if (isBusy(error) || turn.length === 1) throw error
      this.#oneByOne(turn)
      return
    }
    this.#mustBeHere()
    for (const [i, { done }] of turn.entries()) done(results[i])
  }

  /** One bad value must not fail its batch. */
  #oneByOne(turn: readonly Write[]): void {
    for (const write of turn) {
      try {
        this.#transact([write])
      } catch (error) {
        if (isBusy(error)) this.#waitForLock([write])
        else write.failed(this.#asError(error))
      }
    }
  }

  #rollback(): void {
    this.#tally.clear()
    // SQLite may have rolled back by itself (a full disk, for one).
    if (this.#db.isTransaction) this.#db.exec('rollback')
  }

  #waitForLock(turn: readonly Write[]): void {
    const now = mono()
    const patient = turn.filter(({ since, failed }) => {
      if (now - since < PATIENCE) return true
      failed(
        new HoldfastError(
          'STORE_BUSY',
          `sqlite:${this.#path}: another process has held the write lock for ${PATIENCE / 1000} s`,
        ),
      )
      return false
    })
    this.#writes.unshift(...patient)
    if (this.#flushing) clearImmediate(this.#flushing as NodeJS.Immediate)
    this.#flushing = setTimeout(() => this.flush(), 1 + Math.random() * 4)
  }

  #run(ask: WriteCall): unknown {
    const db = this.#db
    switch (ask.call) {
      case 'insert': {
        const now = ask.now ?? this.#clock.now()
        return ask.rows.map((row) => insertRow(db, row, now, this.#tally))
      }
      case 'insert-plain':
        return insertPlain(db, ask.tasks, this.#tally)
      case 'claim':
        return claimRows(db, ask.want, ask.want.now ?? this.#clock.now(), this.#tally)
      case 'commit':
        return commitRows(db, ask.changes, this.#tally)
      case 'commit-endings':
        return commitEndings(db, ask.endings, this.#tally)
      case 'renew': {
        const now = ask.now ?? this.#clock.now()
        return ask.renewals.map((renewal) => renewRow(db, renewal, now))
      }
      case 'remove':
        return ask.removals.map((removal) => removeRow(db, removal, this.#tally))
      case 'put-document':
        return putDocument(db, ask.name, ask.value, ask.version)
      case 'delete-document':
        return deleteDocument(db, ask.name, ask.version)
      case 'put-orphans': {
        const now = ask.now ?? this.#clock.now()
        return ask.keys.map((key) => putOrphan(db, key, now))
      }
    }
  }

  /** With the first write of each second: notes the time, so that a clock set back cannot make leases look eternal to the next process. */
  #keepHouse(): void {
    const now = this.#clock.now()
    if (now - this.#keptHouseAt < HOUSE_EVERY) return
    this.#keptHouseAt = now
    writeMeta(this.#db, 'high_water', String(now))
    sweepKeys(this.#db, now)
  }

  // ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

  async read(ask: ReadCall): Promise<unknown> {
    try {
      this.#mustBeHere()
      return await this.#answer(ask)
    } catch (error) {
      throw this.#asError(error)
    }
  }

  #answer(ask: ReadCall): unknown {
    const db = this.#db
    switch (ask.call) {
      case 'now':
        return this.#clock.now()
      case 'get':
        return ask.ids.map((id) => getRow(db, id))
      case 'find':
        return findKey(db, ask.key)
      case 'list':
        return this.#list(ask)
      case 'count':
        return countRows(db, ask.query, ask.cap, ask.now ?? this.#clock.now())
      case 'glance-list':
        return glanceList(db, ask.query, ask.page, ask.most, ask.page.now ?? this.#clock.now())
      case 'glance-count':
        return glanceCount(db, ask.query, ask.cap, ask.most, ask.now ?? this.#clock.now())
      case 'glance-queues':
        return glanceQueues(db, ask.names, ask.cap, ask.now ?? this.#clock.now())
      case 'get-document':
        return getDocument(db, ask.name)
      case 'list-documents':
        return listDocuments(db, ask.prefix)
      case 'list-orphans':
        return listOrphans(db, ask.limit, ask.after)
    }
  }

  async #list({ query, page }: Extract<ReadCall, { call: 'list' }>): Promise<Row[]> {
    const now = page.now ?? this.#clock.now()
    const rows: Row[] = []
    let after: string | null | undefined = page.after
    do {
      const { after: _, ...rest } = page
      const step = listStep(
        this.#db,
        query,
        { ...rest, limit: page.limit - rows.length, ...(after == null ? null : { after }) },
        now,
      )
      rows.push(...step.rows)
      after = step.after
      if (after !== null) await new Promise(setImmediate)
    } while (after !== null && rows.length < page.limit)
    return rows
  }

  // ── the file itself ──────────────────────────────────────────────────────────────────────────────────────────

  /** Whether another connection has written since the last time this was asked. */
  dataVersion(): number {
    return (prepared(this.#db, 'pragma data_version').get() as unknown as [number])[0]
  }

  /** Monotonic. */
  committedAt(): number {
    return this.#committedAt
  }

  /** A file that was deleted or replaced is still open here, and would swallow writes for nobody. */
  #mustBeHere(): void {
    if (this.#lost) throw this.#lost
    if (this.#files() === this.#opened) return
    this.#lost = new HoldfastError(
      'STORE_IDENTITY_CHANGED',
      `sqlite:${this.#path} or its -wal was deleted or replaced while it was open`,
    )
    throw this.#lost
  }

  /** The log counts as much as the file: what is committed stands there first. */
  #files(): string {
    return `${fileIdentity(this.#path)} ${fileIdentity(`${this.#path}-wal`)}`
  }

  #asError(error: unknown): HoldfastError {
    return asHoldfastError(error, `sqlite:${this.#path}`)
  }

  close(): void {
    this.flush()
    this.#db.close()
  }
}
