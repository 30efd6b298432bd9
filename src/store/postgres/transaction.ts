/** The caller's own transaction: recognised, or refused before anything is written into it. */

import { HoldfastError } from '../../core/errors.ts'
import type { Executor, PgRow, Value } from './connection.ts'
import { readMeta } from './schema.ts'
import { INSTANT_COLUMNS } from './write/arrays.ts'

/** The least that a transaction of the caller's must be able to do: a pg client does, and so does a wrapper of any other. */
interface QueryFunction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly object[] }>
}

const refused = (why: string): HoldfastError => new HoldfastError('INVALID_OPTION', `tx ${why}`, { field: 'tx' })

/** Each connection is asked once: it leads to one database as long as it lives. */
const known = new WeakMap<object, string>()

/** Runs our statements in the transaction that `tx` has open. */
export const joinTransaction = async (tx: unknown, schema: string, identity: string): Promise<Executor> => {
  if (!hasQuery(tx))
    throw refused('must be a pg client in a transaction, or have a query(text, values) function that returns { rows }')
  // A pool would run each statement on another connection, each a transaction by itself.
  if ('idleCount' in tx) throw refused('is a pool: take a client from it, and begin a transaction on that')
  if ('getTransactionStatus' in tx && (tx as { getTransactionStatus(): string | null }).getTransactionStatus() === 'I')
    throw refused('has no transaction open: begin one first')
  const executor = callersExecutor(tx)
  if (known.get(tx) !== identity) {
    // Asked for by name first: a statement that fails would end the caller's transaction.
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

/** Drivers give rows as objects or arrays, and a bigint as text, as a BigInt or as a number. */
const asRow = (row: object): PgRow =>
  Array.isArray(row)
    ? row.map((value) => (typeof value === 'bigint' ? Number(value) : value))
    : Object.entries(row).map(([name, value]) => asCell(name, value))

const asCell = (name: string, value: unknown): PgRow[number] =>
  typeof value === 'bigint' || (typeof value === 'string' && INSTANTS.has(plain(name)))
    ? Number(value)
    : (value as Value as PgRow[number])

/** Some builders rename columns to camel case. */
const plain = (name: string): string => name.replaceAll('_', '').toLowerCase()

/** Without the underscores, and also as columns of a task beside its key. */
const INSTANTS: ReadonlySet<string> = new Set(
  [...INSTANT_COLUMNS, 'now'].flatMap((name) => [plain(name), plain(`of_task_${name}`)]),
)
