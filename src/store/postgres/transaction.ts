/** Joins the caller's transaction, or refuses it before anything is written. */

import { HoldfastError } from '../../core/errors.ts'
import type { Executor, PgRow, Value } from './connection.ts'
import { readMeta } from './schema.ts'
import { INSTANT_COLUMNS } from './write/arrays.ts'

/** The minimal interface of a caller's transaction. A pg client has it, and other clients can be wrapped. */
interface QueryFunction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly object[] }>
}

const refused = (why: string): HoldfastError => new HoldfastError('INVALID_OPTION', `tx ${why}`, { field: 'tx' })

/** The identity behind each connection, read once: a connection never changes its database. */
const known = new WeakMap<object, string>()

/** Runs our statements in the open transaction of `tx`. */
export const joinTransaction = async (tx: unknown, schema: string, identity: string): Promise<Executor> => {
  if (!hasQuery(tx))
    throw refused('must be a pg client in a transaction, or have a query(text, values) function that returns { rows }')
  // A pool would run each statement on another connection, as separate transactions.
  if ('idleCount' in tx) throw refused('is a pool: take a client from it, and begin a transaction on that')
  if ('getTransactionStatus' in tx && (tx as { getTransactionStatus(): string | null }).getTransactionStatus() === 'I')
    throw refused('has no transaction open: begin one first')
  const executor = callersExecutor(tx)
  if (known.get(tx) !== identity) {
    // Check that the table exists first: a failing statement would abort the caller's transaction.
    const [table] = await executor.query('select to_regclass($1)::text', [`${schema}.meta`])
    const found = table?.[0] == null ? null : await readMeta(executor, schema, 'identity')
    if (found !== identity) throw refused("is a transaction on another database than this client's store")
    known.set(tx, identity)
  }
  return executor
}

const hasQuery = (tx: unknown): tx is QueryFunction =>
  typeof tx === 'object' && tx !== null && typeof (tx as QueryFunction).query === 'function'

const callersExecutor = (tx: QueryFunction): Executor => ({
  async query(text, values) {
    const { rows } = await tx.query(text, values as unknown[])
    return rows.map(asRow)
  },
  script: () => Promise.reject(new HoldfastError('INTERNAL', "no scripts in the caller's transaction")),
})

/** Drivers return rows as objects or arrays, and a bigint as text, BigInt or number. */
const asRow = (row: object): PgRow =>
  Array.isArray(row)
    ? row.map((value) => (typeof value === 'bigint' ? Number(value) : value))
    : Object.entries(row).map(([name, value]) => asCell(name, value))

const asCell = (name: string, value: unknown): PgRow[number] =>
  typeof value === 'bigint' || (typeof value === 'string' && INSTANTS.has(plain(name)))
    ? Number(value)
    : (value as Value as PgRow[number])

/** Some query builders rename columns to camel case. */
const plain = (name: string): string => name.replaceAll('_', '').toLowerCase()

/** Names without underscores, including the columns of a task that is returned with its key. */
const INSTANTS: ReadonlySet<string> = new Set(
  [...INSTANT_COLUMNS, 'now'].flatMap((name) => [plain(name), plain(`of_task_${name}`)]),
)
