/** Joins the caller's transaction, or refuses it before anything is written. */
import { HoldfastError } from '../../../core/errors.ts'
import type { TaskRecord } from '../../../core/task.ts'
import type { JoinedTransaction } from '../../store.ts'
import type { Executor, PgRow, Value } from '../connection.ts'
import { asHoldfastError } from '../errors.ts'
import { getTasks } from '../read/query.ts'
import { readMeta } from '../schema.ts'
import { INSTANT_COLUMNS } from '../write/arrays.ts'
import { Committer } from '../write/commit.ts'
import { mayHaveNoTransaction, portable, type RunStatement, statementsOf } from './callers.ts'

export interface OwnTables {
  readonly schema: string
  readonly identity: string
  readonly address: string
}

const refused = (why: string): HoldfastError => new HoldfastError('INVALID_OPTION', `tx ${why}`, { field: 'tx' })

/** The identity behind each connection, read once: a connection never changes its database. */
const known = new WeakMap<object, string>()

/** Runs our statements in the open transaction of `tx`. */
export const joinTransaction = async (tx: unknown, schema: string, identity: string): Promise<Executor> => {
  const run = statementsOf(tx)
  if (typeof run === 'string') throw refused(run)
  if (run === null)
    throw refused(
      'must be a transaction of pg, drizzle, kysely, knex, postgres.js, prisma or TypeORM, or have a query(text, values) function that returns { rows }',
    )
  const executor = callersExecutor(run)
  if (mayHaveNoTransaction(tx) && !(await isInTransaction(executor)))
    throw refused('has no transaction open: its statements are committed one by one')
  if (known.get(tx as object) !== identity) {
    // Check that the table exists first: a failing statement would abort the caller's transaction.
    const [table] = await executor.query('select to_regclass($1)::text', [`${schema}.meta`])
    const found = table?.[0] == null ? null : await readMeta(executor, schema, 'identity')
    if (found !== identity) throw refused("is a transaction on another database than this client's store")
    known.set(tx as object, identity)
  }
  return executor
}

/** A local setting lasts until the end of its transaction, so a second statement sees it only in the same one. */
const isInTransaction = async (executor: Executor): Promise<boolean> => {
  await executor.query("select set_config('holdfast.joined', 'yes', true)", [])
  const [row] = await executor.query("select current_setting('holdfast.joined', true)", [])
  return row?.[0] === 'yes'
}

const callersExecutor = (run: RunStatement): Executor => ({
  async query(text, values) {
    const { rows } = await run(text, values.map(portable))
    return rows.map(asRow)
  },
  script: () => Promise.reject(new HoldfastError('INTERNAL', "no scripts in the caller's transaction")),
})

/** Reads and changes tasks in it. The row of a changed task stays locked until it ends. */
export const joinedTransaction = (tx: unknown, { schema, identity, address }: OwnTables): JoinedTransaction => {
  const joined = async <T>(work: (executor: Executor) => Promise<T>): Promise<T> => {
    try {
      return await work(await joinTransaction(tx, schema, identity))
    } catch (error) {
      throw asHoldfastError(error, address)
    }
  }
  const read = async (executor: Executor, id: string): Promise<TaskRecord | null> =>
    (await getTasks(executor, schema, [id]))[0] ?? null
  return {
    isSynchronous: false,
    read: (id) => joined((executor) => read(executor, id)),
    change: (id, decide) =>
      joined(async (executor) => {
        await executor.query(`select id from ${schema}.task where id = $1::uuid for update`, [id])
        const change = decide(await read(executor, id))
        if (change === null) return
        const [committed] = await new Committer(executor, schema).commit([change])
        if (committed !== 'written')
          throw new HoldfastError('STORE_CONFLICT', `task ${id} changed although its row was locked`, { id })
      }),
  }
}

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
