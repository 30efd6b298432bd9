/** Writes that name one task: changes under their revision in batches of one shape, renewals under their token, removals. */
import type { Change, ChangeSet, Instant } from '../../core/task.ts'
import { HISTORY_KEPT } from '../../core/task.ts'
import { assignmentsOf, type Cell, changedColumns, pushValues, shapeOf, trimHistory } from '../sql/rows.ts'
import type { Committed, Removal, Removed, Renewal, Renewed } from '../store.ts'
import { arrayAt, columnValues } from './arrays.ts'
import { CLOCK } from './claim.ts'
import type { Connections, Value } from './connection.ts'
import { byId } from './order.ts'

/** Options hold nothing that jsonb would refuse or round. */
const withTags = (tags: string): string =>
  `jsonb_set(coalesce(t.options, '{}')::jsonb, '{tags}', ${tags}::jsonb)::text`

interface Shape {
  readonly text: string
  readonly columns: readonly string[]
  readonly rows: Cell[][]
  /** Where each row's change stands in the batch. */
  readonly at: number[]
}

export class Committer {
  readonly #connections: Connections
  readonly #schema: string
  readonly #texts = new Map<string, string>()

  constructor(connections: Connections, schema: string) {
    this.#connections = connections
    this.#schema = schema
  }

  /** One statement writes a row once: a second change of the same task waits for the first. */
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
    const results: Committed[] = new Array(changes.length).fill('conflict')
    const missed: number[] = []
    await Promise.all(
      this.#byShape(changes).map(async ({ text, columns, rows, at }) => {
        for (const [n] of await this.#connections.query(text, columnValues(columns, rows))) {
          results[at[(n as number) - 1]!] = 'written'
        }
      }),
    )
    for (const [i, result] of results.entries()) if (result !== 'written') missed.push(i)
    if (missed.length > 0) await this.#tellGone(changes, missed, results)
    await this.#trim(changes, results)
    return results
  }

  #byShape(changes: readonly Change[]): Shape[] {
    const shapes = new Map<string, Shape>()
    for (const [i, { id, revision, set, entry, leaseExpiresAt }] of changes.entries()) {
      const isSeen = leaseExpiresAt !== undefined
      const name = `${isSeen ? 's' : ''}${shapeOf(set)}`
      let shape = shapes.get(name)
      if (shape === undefined) {
        const columns = ['id', 'revision', 'history', ...(isSeen ? ['lease_expires_at'] : []), ...changedColumns(set)]
        shape = { text: this.#textOf(name, set, columns, isSeen), columns, rows: [], at: [] }
        shapes.set(name, shape)
      }
      const row: Cell[] = [id, revision, JSON.stringify(entry)]
      if (isSeen) row.push(leaseExpiresAt)
      pushValues(row, set)
      shape.rows.push(row)
      shape.at.push(i)
    }
    return [...shapes.values()]
  }

  /** `c` has what the change says: id, the revision it was decided on, the entry to append, the lease's end as seen, and new values. */
  #textOf(name: string, set: ChangeSet, columns: readonly string[], isSeen: boolean): string {
    let text = this.#texts.get(name)
    if (text === undefined) {
      const names = [
        'id',
        'was',
        'entry',
        ...(isSeen ? ['seen'] : []),
        ...changedColumns(set).map((column) => `new_${column}`),
        'n',
      ]
      const unnested = columns.map((column, n) => arrayAt(column, n + 1)).join(', ')
      text = `
        update ${this.#schema}.task t set ${assignmentsOf(set, (column) => `c.new_${column}`, withTags)}, revision = t.revision + 1, history = t.history || ',' || c.entry
        from unnest(${unnested}) with ordinality as c(${names.join(', ')})
        where t.id = c.id and t.revision = c.was${isSeen ? ' and t.lease_expires_at = c.seen' : ''}
        returning c.n`
      this.#texts.set(name, text)
    }
    return text
  }

  async #tellGone(changes: readonly Change[], missed: readonly number[], results: Committed[]): Promise<void> {
    const there = await this.#existing(missed.map((i) => changes[i]!.id))
    for (const i of missed) if (!there.has(changes[i]!.id)) results[i] = 'gone'
  }

  async #existing(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#connections.query(`select id from ${this.#schema}.task where id = any($1::uuid[])`, [ids])
    return new Set(rows.map(([id]) => id as string))
  }

  /** Readers cut a history to what is kept; the stored text is cut now and then, so that it does not grow without end. */
  async #trim(changes: readonly Change[], results: readonly Committed[]): Promise<void> {
    for (const [i, { id, entry }] of changes.entries()) {
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

  async renew(renewals: readonly Renewal[], now: Instant | null): Promise<Renewed[]> {
    const rows = await this.#connections.query(renewStatement(this.#schema), renewValues(renewals, now))
    return renewedOf(renewals, rows)
  }

  async remove(removals: readonly Removal[]): Promise<Removed[]> {
    const ordered = byId(removals)
    const rows = await this.#connections.query(
      `with gone as (
        delete from ${this.#schema}.task t using unnest($1::uuid[], $2::integer[], $3::boolean[]) as r(id, was, end_key)
        where t.id = r.id and t.revision = r.was returning t.id, r.was, t.idempotency_key, r.end_key
      ), ended as (
        delete from ${this.#schema}.key k using gone g where g.end_key and k.key = g.idempotency_key and k.task_id = g.id
      ), orphaned as (
        update ${this.#schema}.key k set orphan = true from gone g where not g.end_key and k.key = g.idempotency_key and k.task_id = g.id
      ) select id, was from gone`,
      [ordered.map(({ id }) => id), ordered.map(({ revision }) => revision), ordered.map(({ endKey }) => endKey)],
    )
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
}

/** Also run by the keeper's thread, on its own connection. */
export const renewStatement = (schema: string): string => `
  with ${CLOCK}
  update ${schema}.task t set lease_expires_at = clock.now + r.ttl, progress = coalesce(r.progress, t.progress)
  from unnest($2::uuid[], $3::text[], $4::bigint[], $5::text[]) as r(id, token, ttl, progress), clock
  where t.id = r.id and t.lease_token = r.token and t.status = 'running'
  returning t.id, t.lease_token, t.cancel_requested_at`

export const renewValues = (all: readonly Renewal[], now: Instant | null): Value[] => {
  const renewals = byId(lastOfEach(all))
  return [
    now,
    renewals.map(({ id }) => id),
    renewals.map(({ token }) => token),
    renewals.map(({ leaseTtl }) => leaseTtl),
    renewals.map(({ progress }) => progress ?? null),
  ]
}

/** One statement writes a row once: of several renewals of one lease the last counts, with the last progress given. */
const lastOfEach = (renewals: readonly Renewal[]): readonly Renewal[] => {
  const last = new Map<string, Renewal>()
  for (const renewal of renewals)
    last.set(`${renewal.id} ${renewal.token}`, { ...last.get(`${renewal.id} ${renewal.token}`), ...renewal })
  return [...last.values()]
}

export const renewedOf = (renewals: readonly Renewal[], rows: readonly (readonly unknown[])[]): Renewed[] => {
  const held = new Map(
    rows.map(([id, token, cancelRequestedAt]) => [
      `${id} ${token}`,
      cancelRequestedAt === null ? ('held' as const) : ('cancel' as const),
    ]),
  )
  return renewals.map(({ id, token }) => held.get(`${id} ${token}`) ?? 'lost')
}
