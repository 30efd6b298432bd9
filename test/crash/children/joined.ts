/** Runs tasks whose handler ends them in transactions of its own, and kills itself at any point of those. */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { Client as PgClient } from 'pg'
import { connect, type Handler, silentLogger, type TaskContext } from '../../../src/index.ts'
import { chance } from '../seed.ts'
import { planOf, say } from './child.ts'

export interface JoinedPlan {
  readonly address: string
  readonly seed: number
  /** In a thousand, at each of the points. */
  readonly deaths: number
  /** The rows are committed before the end of the task: what the transaction is there to prevent. */
  readonly isPlanted: boolean
}

const { address, seed, deaths, isPlanted } = planOf<JoinedPlan>()
const { between } = chance(seed)

const mayDie = (): void => {
  if (between(1, 1_000) <= deaths) process.kill(process.pid, 'SIGKILL')
}

const mayFail = (): boolean => between(1, 1_000) <= deaths

const insert = (table: string, { task: { id }, fence }: TaskContext): string =>
  `insert into ${table} values ('${id}', ${fence})`

/** One transaction after the other: nothing may be awaited in them, because another handler would wait for the lock in this thread. */
const onSqlite = (path: string): Handler => {
  const db = new DatabaseSync(path, { timeout: 20_000 })
  const inTransaction = (work: () => void): void => {
    db.exec('begin immediate')
    try {
      mayDie()
      work()
      mayDie()
      if (mayFail()) throw new Error('not this time')
      db.exec('commit')
    } catch (error) {
      db.exec('rollback')
      throw error
    }
    mayDie()
  }
  return async (_, ctx) => {
    inTransaction(() => void ctx.step('charge', () => db.exec(insert('charges', ctx)), { tx: db }))
    await ctx.step('between', () => 1)
    inTransaction(() => {
      db.exec(insert('orders', ctx))
      if (!isPlanted) void ctx.complete(ctx.fence, { tx: db })
    })
    return ctx.fence
  }
}

const onPostgres =
  (url: string): Handler =>
  async (_, ctx) => {
    const db = new PgClient({ connectionString: url })
    db.on('error', () => {})
    await db.connect()
    const inTransaction = async (work: () => Promise<unknown>): Promise<void> => {
      await db.query('begin')
      mayDie()
      await work()
      mayDie()
      const committed = db.query('commit')
      if (mayFail()) {
        // The reply is lost; whether the commit had arrived is not known.
        committed.catch(() => {})
        await wait(between(0, 3))
        db.connection.stream.destroy()
        throw new Error('the reply to the commit was lost')
      }
      await committed
      mayDie()
    }
    try {
      await inTransaction(() => ctx.step('charge', () => db.query(insert('charges', ctx)).then(() => 1), { tx: db }))
      await ctx.step('between', () => 1)
      await inTransaction(async () => {
        await db.query(insert('orders', ctx))
        if (!isPlanted) await ctx.complete(ctx.fence, { tx: db })
      })
      return ctx.fence
    } finally {
      await db.end().catch(() => {})
    }
  }

const client = await connect(address, { logger: silentLogger })
const worker = client.worker({ concurrency: 4, leaseTtl: '1500ms', pollInterval: '50ms' })
worker.handle('order', address.startsWith('sqlite:') ? onSqlite(address.slice('sqlite:'.length)) : onPostgres(address))
say('ready')
await worker.run()
await client.close()
say('stopped')
