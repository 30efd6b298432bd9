/**
 * The ceiling for inserts: a loop over one prepared statement, into a file that Holdfast itself has opened: its table,
 * indexes and pragmas. The rows are ready in memory before the clock starts: no ids to make, no JSON to write, no
 * thread to cross.
 */
import { join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { openFile } from '../../src/store/sqlite/file/connection.ts'
import { payload, type System, timed } from '../system.ts'
import { loadHoldfast } from './holdfast.ts'

const PER_TRANSACTION = 1_000
const TYPE = 'noop'

type Cell = string | number
type Cells = readonly (readonly [column: string, value: Cell])[]

export const rawSqlite = async (): Promise<System> => {
  const { connect, silentLogger } = await loadHoldfast()
  let db: DatabaseSync
  let model: Cells
  let insert: StatementSync
  let inserted = 0

  return {
    name: 'raw-sqlite',
    keeps: { durability: 'fsync per commit (WAL, FULL)', lease: '–', history: 'the row only', rows: 'all' },
    hasConcurrentCallers: false,

    async open({ dir }) {
      const path = join(dir, 'raw.db')
      const client = await connect(`sqlite:${path}`, { logger: silentLogger })
      await client.submit(TYPE, payload(0))
      await client.close()
      db = openFile(path, { create: false, identity: '' }).db
      model = submittedCells(db)
      const columns = model.map(([column]) => column)
      insert = db.prepare(
        `insert into holdfast_task (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
      )
    },

    insertBatch(count) {
      const rows = Array.from({ length: count }, (_, n) => rowLike(model, n))
      return timed(() => {
        for (let start = 0; start < count; start += PER_TRANSACTION) {
          db.exec('begin immediate')
          for (let i = start; i < Math.min(start + PER_TRANSACTION, count); i++) insert.run(...rows[i]!)
          db.exec('commit')
        }
      })
    },

    async insertOne() {
      insert.run(...rowLike(model, inserted++))
    },

    async close() {
      db.close()
    },
  }
}

/** The cells that Holdfast wrote for one submitted task, without empty ones and defaults. */
const submittedCells = (db: DatabaseSync): Cells => {
  const row = db.prepare('select * from holdfast_task').get()!
  const columns = db.prepare(`select name, dflt_value from pragma_table_info('holdfast_task') where pk = 0`).all()
  return columns.flatMap(({ name, dflt_value: usual }) => {
    const value = row[name as string] as Cell | null
    const literal = typeof value === 'string' ? `'${value}'` : String(value)
    return value === null || literal === usual ? [] : [[name as string, value] as const]
  })
}

/** The same task with another id and input. */
const rowLike = (model: Cells, n: number): Cell[] =>
  model.map(([column, value]) => (column === 'id' ? idOf(n) : column === 'input' ? JSON.stringify(payload(n)) : value))

/** Increasing like UUIDv7, so that the index grows at its end, and later than any real id, so that none collides. */
const idOf = (n: number): string => `ffffffff-ffff-7000-8000-${n.toString(16).padStart(12, '0')}`
