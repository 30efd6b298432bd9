/** Runs calls on the file. Write calls that wait at the same time share one transaction and its fsync. */
import { hostname } from 'node:os'
import type { DatabaseSync } from 'node:sqlite'
import { HoldfastError } from '../../core/errors.ts'
import { PAGE_WEIGHT } from '../../core/storage/page-weight.ts'
import { replacedBy, type StoreState } from '../../core/storage/restore.ts'
import type { Instant } from '../../core/task.ts'
import { type Row, weightOfRow } from '../sql/rows.ts'
import { claimRows, idleLook } from './claim/claim.ts'
import { waitingGroups } from './claim/waiting-groups.ts'
import { asHoldfastError, isBusy } from './errors.ts'
import type { HostClock } from './file/clock.ts'
import { mono } from './file/clock.ts'
import { writeHighWater } from './file/clock-mark.ts'
import { fileIdentity, prepared } from './file/connection.ts'
import type { ReadCall, WriteCall } from './protocol.ts'
import { countQueues, countTasks, type ListedRows, listBounded } from './read/bounded.ts'
import { Tally } from './read/counts.ts'
import { listDetachedKeys, putDetachedKey } from './read/detached-keys.ts'
import { deleteDocument, getDocument, listDocuments, putDocument } from './read/documents.ts'
import { findKey, getRows, leasedBy, listStep } from './read/query.ts'
import { writeMeta } from './schema.ts'
import { acceptRestore, readState } from './write/accept-restore.ts'
import { commitRows, removeRow, renewRow, sweepKeys } from './write/commit.ts'
import { commitEndings } from './write/commit-batch.ts'
import { insertPlain, insertRow } from './write/insert.ts'
import { repairClock } from './write/repair-clock.ts'

export interface Write {
  readonly ask: WriteCall
  readonly since: number
  done(value: unknown): void
  failed(error: HoldfastError): void
}

/** How long a call may wait for the file's write lock. */
const PATIENCE = 10_000
/** A call that has waited this long for the lock takes no leases, and a look reports none as lapsed. */
const LATE = 1_000
const LATE_LOOK = 250
const HOUSE_EVERY = 1_000
const THIS_PROCESS = `${hostname()}/${process.pid}`

export class Engine {
  readonly #db: DatabaseSync
  readonly #path: string
  readonly #clock: HostClock
  /** The identity of the files when they were opened. */
  readonly #opened: string
  readonly #tally = new Tally()
  readonly #writes: Write[] = []
  #flushing: NodeJS.Immediate | NodeJS.Timeout | null = null
  #keptHouseAt = 0
  #committedAt = Number.NEGATIVE_INFINITY
  #lost: HoldfastError | null = null
  /** The identity of the store, and the latest epoch that this process has seen. */
  #state: StoreState
  #nextEpoch: number | null = null

  constructor(db: DatabaseSync, path: string, clock: HostClock) {
    this.#state = readState(db)
    this.#db = db
    this.#path = path
    this.#clock = clock
    this.#opened = this.#files()
  }

  // ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────

  write(write: Write): void {
    this.#writes.push(write)
    // An immediate, so that all calls that have arrived by now share the transaction.
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

  /** Answers claims that find nothing to lease and nothing lapsed without taking the lock. */
  #answerIdleLooks(turn: readonly Write[]): readonly Write[] {
    if (turn.some(({ ask }) => ask.call !== 'claim')) return turn
    return turn.filter(({ ask, done }) => {
      if (ask.call !== 'claim') return true
      const now = ask.request.now ?? this.#clock.now()
      const answer = idleLook(this.#db, ask.request, now)
      if (answer !== null) done(answer)
      return answer === null
    })
  }

  #transact(turn: readonly Write[]): void {
    this.#db.exec('begin immediate')
    let results: unknown[]
    this.#nextEpoch = null
    try {
      this.#mustBeTheSame()
      const now = mono()
      results = turn.map(({ ask, since }) => this.#run(ask, now - since))
      this.#tally.write(this.#db)
      this.#keepHouse()
      this.#db.exec('commit')
      if (this.#nextEpoch !== null) this.#state = { ...this.#state, epoch: this.#nextEpoch }
      if (turn.some(({ ask }) => ask.call === 'accept-restore')) this.#state = readState(this.#db)
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

  /** Runs the calls separately, so that one bad value does not fail its batch. */
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
    // SQLite may have rolled back already, for example because the disk is full.
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

  /** `waited`: for the lock. */
  #run(ask: WriteCall, waited: number): unknown {
    const db = this.#db
    switch (ask.call) {
      case 'insert': {
        const now = ask.now ?? this.#clock.now()
        return ask.rows.map((row) => insertRow(db, row, now, this.#tally))
      }
      case 'insert-plain':
        return insertPlain(db, ask.tasks, this.#tally)
      case 'claim':
        return claimRows(db, ask.request, ask.request.now ?? this.#clock.now(), this.#tally, waited > LATE_LOOK)
      case 'commit':
        return commitRows(db, ask.changes, this.#tally, waited > LATE)
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
      case 'put-detached-keys': {
        const now = ask.now ?? this.#clock.now()
        return ask.keys.map((key) => putDetachedKey(db, key, now))
      }
      case 'repair-clock':
        return repairClock(db, Date.now())
      case 'accept-restore':
        return acceptRestore(db)
    }
  }

  /** With the first write of each second, stores the time, so that a clock that is set back cannot make leases endless for the next process. */
  #keepHouse(): void {
    const now = this.#clock.now()
    if (Math.abs(now - this.#keptHouseAt) < HOUSE_EVERY) return
    this.#keptHouseAt = now
    writeHighWater(this.#db, now, THIS_PROCESS)
    this.#nextEpoch = this.#state.epoch + 1
    writeMeta(this.#db, 'epoch', String(this.#nextEpoch))
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
        return getRows(db, ask.ids)
      case 'leased-by':
        return leasedBy(db, ask.workerId, ask.op)
      case 'find':
        return findKey(db, ask.key)
      case 'list':
        return this.#list(ask)
      case 'count':
        return countTasks(db, ask.query, ask.limits, ask.limits.now ?? this.#clock.now())
      case 'count-queues':
        return countQueues(db, ask.names, ask.cap, ask.now ?? this.#clock.now())
      case 'waiting-groups':
        return waitingGroups(db, ask.request, ask.request.now ?? this.#clock.now())
      case 'get-document':
        return getDocument(db, ask.name)
      case 'list-documents':
        return listDocuments(db, ask.prefix)
      case 'list-detached-keys':
        return listDetachedKeys(db, ask.limit, ask.after)
    }
  }

  async #list({ query, page }: Extract<ReadCall, { call: 'list' }>): Promise<ListedRows> {
    const now = page.now ?? this.#clock.now()
    if (page.maxScanned !== undefined) return listBounded(this.#db, query, page, page.maxScanned, now)
    const rows: Row[] = []
    let weight = 0
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
      weight += step.rows.reduce((sum, row) => sum + weightOfRow(row), 0)
      after = weight >= PAGE_WEIGHT ? null : step.after
      if (after !== null) await new Promise(setImmediate)
    } while (after !== null && rows.length < page.limit)
    return { rows, stoppedAt: null }
  }

  // ── the file itself ──────────────────────────────────────────────────────────────────────────────────────────

  /** Changes when another connection has written. */
  dataVersion(): number {
    return (prepared(this.#db, 'pragma data_version').get() as unknown as [number])[0]
  }

  now(): Instant {
    return this.#clock.now()
  }

  /** Monotonic: when this connection last committed. */
  committedAt(): number {
    return this.#committedAt
  }

  /** Throws if the file was deleted or replaced: it is still open here, and writes to it would be lost. */
  #mustBeHere(): void {
    if (this.#lost) throw this.#lost
    if (this.#files() === this.#opened) return
    this.#lost = new HoldfastError(
      'STORE_IDENTITY_CHANGED',
      `sqlite:${this.#path} or its -wal was deleted or replaced while it was open`,
    )
    throw this.#lost
  }

  /** Detects a restore into the open file, as `.restore` does, from the file's contents. Checked under the lock in each transaction. */
  #mustBeTheSame(): void {
    const found = readState(this.#db)
    const why = replacedBy(this.#state, found)
    if (why === null) {
      this.#state = found
      return
    }
    this.#lost = new HoldfastError('STORE_IDENTITY_CHANGED', `sqlite:${this.#path} ${why}`)
    throw this.#lost
  }

  /** Includes the log, because commits are written there first. */
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
