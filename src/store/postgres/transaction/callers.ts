/**
 * The open transaction of a caller, whichever library began it, as one function that runs a statement. Each library is recognised by its shape, so
 * none is imported.
 */
import type { Value } from '../connection.ts'

interface Result {
  readonly rows: readonly object[]
}

export type RunStatement = (text: string, values: readonly unknown[]) => Promise<Result>

type Method = (...args: readonly unknown[]) => unknown
type Shaped = Readonly<Record<string, unknown>>
/** null: it is of another library. A text: why it cannot be joined. */
type Library = (tx: Shaped) => RunStatement | string | null

/** null: not a transaction of a known library. A text: why it cannot be joined. */
export const statementsOf = (tx: unknown): RunStatement | string | null => {
  if ((typeof tx !== 'object' && typeof tx !== 'function') || tx === null) return null
  for (const library of LIBRARIES) {
    const found = library(tx as Shaped)
    if (found !== null) return found
  }
  return null
}

/** By its shape it may as well run each statement in a transaction of its own: a data source of TypeORM, a pool in a wrapper. */
export const mayHaveNoTransaction = (tx: unknown): boolean => {
  const shaped = tx as Shaped
  if (LIBRARIES.find((library) => library(shaped) !== null) !== fromPg) return false
  const status = method(shaped, 'getTransactionStatus')?.()
  return status !== 'T' && status !== 'E'
}

const method = (tx: Shaped, name: string): Method | null =>
  typeof tx[name] === 'function' ? (tx[name] as Method).bind(tx) : null

const rowsOf = (result: unknown): Result => ({
  rows: Array.isArray(result) ? result : ((result as { readonly rows?: readonly object[] }).rows ?? []),
})

const fromKysely: Library = (tx) => {
  const execute = method(tx, 'executeQuery')
  if (execute === null) return null
  if (tx['isTransaction'] !== true) return 'is not a transaction of kysely: pass the trx of db.transaction().execute()'
  return async (sql, parameters) => {
    const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
    return rowsOf(await execute({ sql, parameters, query, queryId: { queryId: 'holdfast' } }))
  }
}

const fromPrisma: Library = (tx) => {
  const query = method(tx, '$queryRawUnsafe')
  if (query === null) return null
  // Since Prisma 7 a transaction has $transaction too, for savepoints.
  if (method(tx, '$connect') !== null)
    return 'is the client of prisma: pass the tx of prisma.$transaction(async (tx) => …)'
  return async (text, values) => rowsOf(await query(text, ...values))
}

/** It numbers parameters itself: each $n becomes a ? with its own value, and a ? of ours is escaped. */
const fromKnex: Library = (tx) => {
  const raw = method(tx, 'raw')
  if (raw === null || typeof tx !== 'function') return null
  if (tx['isTransaction'] !== true) return 'is not a transaction of knex: pass the trx of knex.transaction()'
  return async (text, values) => {
    const bound: unknown[] = []
    const sql = text.replaceAll('?', '\\?').replaceAll(/\$(\d+)/g, (_, n: string) => {
      bound.push(values[Number(n) - 1])
      return '?'
    })
    return rowsOf(await raw(sql, bound))
  }
}

const fromPostgresJs: Library = (tx) => {
  const unsafe = method(tx, 'unsafe')
  if (unsafe === null) return null
  if (method(tx, 'savepoint') === null)
    return 'is not a transaction of postgres.js: pass the sql of sql.begin(async (sql) => …)'
  return async (text, values) => rowsOf(await unsafe(text, [...values]))
}

/** A client of pg, or any object with the same function. */
const fromPg: Library = (tx) => {
  const query = method(tx, 'query')
  if (query === null) return null
  // A pool would run each statement on another connection, as separate transactions.
  if ('idleCount' in tx) return 'is a pool: take a client from it, and begin a transaction on that'
  if (method(tx, 'getTransactionStatus')?.() === 'I') return 'has no transaction open: begin one first'
  return async (text, values) => rowsOf(await query(text, values))
}

/** Its `execute` takes any object that prints itself as a query. */
const fromDrizzle: Library = (tx) => {
  const execute = method(tx, 'execute')
  if (execute === null || method(tx, 'select') === null) return null
  if (method(tx, 'rollback') === null)
    return 'is not a transaction of drizzle: pass the tx of db.transaction(async (tx) => …)'
  return async (sql, values) => {
    const printed = { sql, params: [...values] }
    return rowsOf(await execute({ getSQL: () => ({ toQuery: () => printed }) }))
  }
}

const LIBRARIES: readonly Library[] = [fromKysely, fromPrisma, fromKnex, fromPostgresJs, fromPg, fromDrizzle]

/** Arrays are sent as PostgreSQL's text, because each driver encodes them in its own way. */
export const portable = (value: Value): unknown => (Array.isArray(value) ? arrayText(value) : value)

const arrayText = (values: readonly unknown[]): string =>
  `{${values.map((value) => (value === null ? 'NULL' : `"${String(value).replaceAll(/["\\]/g, '\\$&')}"`)).join(',')}}`
