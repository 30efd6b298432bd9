/**
 * The ceiling for inserts: a loop over one prepared statement, into a file that Holdfast itself has opened: its
 * table, indexes and pragmas. The rows are ready in memory before the clock starts: no ids to make, no JSON to write, no thread to cross.
 */
import { join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Row } from '../../src/store/sql/rows.ts'
import { payload, type System, timed } from '../system.ts'
import { loadConnection, loadRows } from './holdfast.ts'

const PER_TRANSACTION = 1_000
const TYPE = 'noop'

export const rawSqlite = async (): Promise<System> => {
  const { openFile } = await loadConnection()
  const { FRESH_COLUMNS } = await loadRows()
  const columns = FRESH_COLUMNS.split(',').map((column) => column.trim())
  let db: DatabaseSync
  let insert: StatementSync
  let inserted = 0

  return {
    name: 'raw-sqlite',
    keeps: { durability: 'fsync per commit (WAL, FULL)', lease: '–', history: 'the row only', rows: 'all' },
    hasConcurrentCallers: false,

    async open(dir) {
      db = openFile(join(dir, 'raw.db'), { create: true, identity: 'benchmark' }).db
      insert = db.prepare(
        `insert into holdfast_task (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
      )
    },

    insertBatch(count) {
      const rows = Array.from({ length: count }, (_, n) => freshRow(columns, n))
      return timed(() => {
        for (let start = 0; start < count; start += PER_TRANSACTION) {
          db.exec('begin immediate')
          for (let i = start; i < Math.min(start + PER_TRANSACTION, count); i++) insert.run(...rows[i]!)
          db.exec('commit')
        }
      })
    },

    async insertOne() {
      insert.run(...freshRow(columns, inserted++))
    },

    async close() {
      db.close()
    },
  }
}

/** What Holdfast would write for a task with default options, column by column; the sizes are what counts. */
const freshRow = (columns: readonly string[], n: number): Row => {
  const now = Date.now()
  // As UUIDv7: time first, so that the index grows at its end.
  const time = now.toString(16).padStart(12, '0')
  const count = n.toString(16).padStart(12, '0')
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${count}`
  const values: Readonly<Record<string, string | number | null>> = {
    id,
    queue: 'default',
    type: TYPE,
    priority: 0,
    available_at: now,
    expires_at: null,
    created_at: now,
    updated_at: now,
    idempotency_key: null,
    options: null,
    input: JSON.stringify(payload(n)),
    history: JSON.stringify({
      n: 1,
      at: now,
      move: 'submit',
      to: 'pending',
      by: 'benchmark.example/12345',
      op: 'AZ-cv0sQd3CYxT0s_S3gQA',
    }),
  }
  return columns.map((column) => {
    const value = values[column]
    if (value === undefined)
      throw new Error(`Holdfast now writes ${column} for a new task: give the raw loop a value for it`)
    return value
  })
}
