/** Writes to existing tasks: changes guarded by revision, in batches of one shape, and removals. */
import type { Change, ChangeSet, HistoryEntry } from '../../../core/task.ts'
import { HISTORY_KEPT, isInHistory } from '../../../core/task.ts'
import {
  assignmentsOf,
  type Cell,
  changedColumns,
  entryBeforeOp,
  isPlain,
  isSameEntry,
  pushValues,
  shapeOf,
  trimHistory,
} from '../../sql/rows.ts'
import type { Committed, Removal, Removed } from '../../store.ts'
import type { Executor } from '../connection.ts'
import { byId } from '../read/order.ts'
import { type Batch, type BatchWords, bindRows } from './arrays.ts'
import { appendEntries, type Entries, entryValues, removeEntries } from './journal.ts'

/** Safe because options contain nothing that jsonb would refuse or round. */
const withOption = (options: string, name: string, json: string): string =>
  `jsonb_set(coalesce(${options === 'options' ? 't.options' : options}, '{}')::jsonb, '{${name}}', ${json}::jsonb)::text`

interface Shape {
  readonly set: ChangeSet
  readonly isSeen: boolean
  /** Rows that another transaction has locked count as conflicts. */
  readonly passes: boolean
  /** The entries end in the lease token of their row. */
  readonly isOfLease: boolean
  readonly isListed: boolean
  readonly rows: Cell[][]
  /** Of the changes that have any; a statement without entries has another text. */
  readonly entries: Entries[] | null
  /** The position of each row's change in the batch. */
  readonly at: number[]
}

const NONE = '00000000-0000-0000-0000-000000000000'

/** A statement that has waited long for a lock takes no leases, because renewals of other workers have waited too. */
const IN_TIME = `clock_timestamp() < transaction_timestamp() + interval '1 second'`

/** Returns no rows when every change was written (the usual case). A single row with the id NONE means that none was. */
const toldUnlessAll = (written: string, revision: string, amount: string): string => `
  select id, ${revision} from ${written} where (select count(*) from ${written}) < ${amount}::integer
  union all
  select '${NONE}'::uuid, 0 where (select count(*) from ${written}) = 0`

const nameOf = ({ set, isSeen, passes, isOfLease, isListed, entries }: Omit<Shape, 'rows' | 'at'>): string =>
  `${isSeen ? 's' : ''}${passes ? 'p' : ''}${isOfLease ? 'l' : ''}${isListed ? '' : 'u'}${entries === null ? '' : 'j'}${shapeOf(set)}`

const byShape = (changes: readonly Change[]): readonly Shape[] => {
  const shapes = new Map<string, Shape>()
  let last: { readonly entry: HistoryEntry; readonly text: string } | null = null
  for (let at = 0; at < changes.length; at++) {
    const { id, revision, set, entry, leaseExpiresAt, passesLocked, journal, mark } = changes[at]!
    const isSeen = leaseExpiresAt !== undefined
    const passes = isSeen || passesLocked === true
    const isOfLease = mark === entry.op && isPlain(entry.op)
    const isListed = isInHistory(entry)
    const name = nameOf({ set, isSeen, passes, isOfLease, isListed, entries: journal === undefined ? null : [] })
    let shape = shapes.get(name)
    if (shape === undefined) {
      shape = { set, isSeen, passes, isOfLease, isListed, rows: [], entries: journal === undefined ? null : [], at: [] }
      shapes.set(name, shape)
    }
    if (journal !== undefined) shape.entries!.push({ id, journal })
    if (!isOfLease) last = null
    else if (last === null || !isSameEntry(last.entry, entry, 'op')) last = { entry, text: entryBeforeOp(entry) }
    const row: Cell[] = [id, revision]
    if (isListed) row.push(last?.text ?? `,${JSON.stringify(entry)}`)
    if (isSeen) row.push(leaseExpiresAt)
    pushValues(row, set)
    shape.rows.push(row)
    shape.at.push(at)
  }
  return [...shapes.values()]
}

export class Committer {
  readonly #connections: Pick<Executor, 'query'>
  readonly #schema: string
  readonly #texts = new Map<string, string>()

  constructor(connections: Pick<Executor, 'query'>, schema: string) {
    this.#connections = connections
    this.#schema = schema
  }

  /** One statement can write a row only once, so a second change of the same task is written after the first. */
  async commit(changes: readonly Change[]): Promise<Committed[]> {
    const seen = new Set<string>()
    const first: Change[] = []
    const later: Change[] = []
    for (const change of changes) (seen.size === seen.add(change.id).size ? later : first).push(change)
    if (later.length === 0) return this.#commitInOrder(changes)
    const [written, after] = [await this.#commitInOrder(first), await this.commit(later)]
    return changes.map((change) =>
      first.includes(change) ? written[first.indexOf(change)]! : after[later.indexOf(change)]!,
    )
  }

  async #commitInOrder(changes: readonly Change[]): Promise<Committed[]> {
    const ordered = byId(changes)
    const results = await this.#commitDistinct(ordered)
    if (ordered === changes) return results
    const byTask = new Map(ordered.map(({ id }, i) => [id, results[i]!]))
    return changes.map(({ id }) => byTask.get(id)!)
  }

  async #commitDistinct(changes: readonly Change[]): Promise<Committed[]> {
    const results: Committed[] = new Array(changes.length).fill('written')
    const missed: number[] = []
    await Promise.all(
      byShape(changes).map(async (shape) => {
        const written = await this.#writeShape(shape)
        if (written === null) return
        for (const at of shape.at) if (!written.has(changes[at]!.id)) missed.push(at)
      }),
    )
    for (const at of missed) results[at] = 'conflict'
    if (missed.length > 0) await this.#tellGone(changes, missed, results)
    await this.#trim(changes, results)
    return results
  }

  /** Returns the ids that were written; null means all. */
  async #writeShape(shape: Shape): Promise<ReadonlySet<string> | null> {
    const { set, isSeen, isListed, rows, entries } = shape
    const columns = [
      'id',
      'revision',
      ...(isListed ? ['history'] : []),
      ...(isSeen ? ['seen'] : []),
      ...changedColumns(set),
    ]
    const batch = bindRows(columns, rows)
    const name = `${nameOf(shape)} ${batch.name}`
    let text = this.#texts.get(name)
    if (text === undefined) {
      text = this.#textOf(shape, batch.words(), columns.length + 2)
      this.#texts.set(name, text)
    }
    const values = [...batch.values, rows.length, ...(entries === null ? [] : entryValues(entries))]
    const written = await this.#connections.query(text, values)
    return written.length === 0 ? null : new Set(written.map(([id]) => id as string))
  }

  #textOf(shape: Shape, { of, table, firsts, isAlike, free: amount }: BatchWords, firstOfEntries: number): string {
    const { set, isSeen, passes, isOfLease, isListed, entries } = shape
    const entry = (): string => (isOfLease ? `${of('history')} || t.lease_token || '"}'` : of('history'))
    const history = isListed ? `, history = t.history || ${entry()}` : ''
    const journal = entries === null ? '' : `, noted as (${appendEntries(this.#schema, 'written', firstOfEntries)})`
    // A lapsed lease, or a task that its handler ends in a transaction of its own: nothing may wait for that.
    const free = passes
      ? `free as materialized (select f.id from ${this.#schema}.task f where f.id = any(${firsts}) for update skip locked), `
      : ''
    return `
      with ${free}written as (
        update ${this.#schema}.task t set ${assignmentsOf(set, of, withOption, 't.revision')}, revision = ${of('revision')} + 1${history}
        ${isAlike ? '' : `from ${table}`}
        where t.id = ${isAlike ? `any(${firsts})` : 'r.id'} and t.revision = ${of('revision')}${isSeen ? ` and t.lease_expires_at = ${of('seen')} and ${IN_TIME}` : ''}${passes ? ' and t.id in (select id from free)' : ''}
        returning t.id, t.revision${entries === null ? '' : ', t.options'}
      )${journal} ${toldUnlessAll('written', 'revision', amount)}`
  }

  async #tellGone(changes: readonly Change[], missed: readonly number[], results: Committed[]): Promise<void> {
    const there = await this.#existing(missed.map((i) => changes[i]!.id))
    for (const i of missed) if (!there.has(changes[i]!.id)) results[i] = 'gone'
  }

  async #existing(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#connections.query(`select id from ${this.#schema}.task where id = any($1::uuid[])`, [ids])
    return new Set(rows.map(([id]) => id as string))
  }

  /** Readers cut a history to the kept length; the stored text is cut now and then, so that it does not grow forever. */
  async #trim(changes: readonly Change[], results: readonly Committed[]): Promise<void> {
    for (let i = 0; i < changes.length; i++) {
      const { id, entry } = changes[i]!
      if (results[i] !== 'written' || entry.n <= HISTORY_KEPT || entry.n % (HISTORY_KEPT / 2) > 1) continue
      const [row] = await this.#connections.query(`select history, revision from ${this.#schema}.task where id = $1`, [
        id,
      ])
      if (row === undefined) continue
      const [history, revision] = row as [string, number]
      await this.#connections.query(`update ${this.#schema}.task set history = $2 where id = $1 and revision = $3`, [
        id,
        trimHistory(history),
        revision,
      ])
    }
  }

  async remove(removals: readonly Removal[]): Promise<Removed[]> {
    const batch = bindRows(
      ['id', 'revision', 'end_key'],
      byId(removals).map(({ id, revision, endKey }): Cell[] => [id, revision, String(endKey)]),
    )
    const rows = await this.#connections.query(this.#removeText(batch), [...batch.values, removals.length])
    if (rows.length === 0) return removals.map(() => 'removed')
    const removed = new Set(rows.map(([id, was]) => `${id} ${was}`))
    const toCome = new Set(rows.map(([id]) => id as string))
    const missed = removals.filter(({ id }) => !toCome.has(id)).map(({ id }) => id)
    const there = missed.length === 0 ? new Set<string>() : await this.#existing(missed)
    return removals.map(({ id, revision }): Removed => {
      if (!removed.delete(`${id} ${revision}`)) return toCome.has(id) || there.has(id) ? 'conflict' : 'gone'
      toCome.delete(id)
      return 'removed'
    })
  }

  #removeText({ name, words }: Batch): string {
    let text = this.#texts.get(`remove ${name}`)
    if (text === undefined) {
      const { of, table, firsts, isAlike, free } = words()
      text = `
        with gone as (
          delete from ${this.#schema}.task t ${isAlike ? '' : `using ${table}`}
          where t.id = ${isAlike ? `any(${firsts})` : 'r.id'} and t.revision = ${of('revision')}
          returning t.id, ${of('revision')} as was, t.idempotency_key, ${of('end_key')} as end_key, t.options
        ), ended as (
          delete from ${this.#schema}.key k using gone g where g.end_key and k.key = g.idempotency_key and k.task_id = g.id
        ), orphaned as (
          update ${this.#schema}.key k set orphan = true from gone g where not g.end_key and k.key = g.idempotency_key and k.task_id = g.id
        ), forgotten as (
          ${removeEntries(this.#schema, 'gone')}
        ) ${toldUnlessAll('gone', 'was', free)}`
      this.#texts.set(`remove ${name}`, text)
    }
    return text
  }
}
