/** Connections: the driver, loaded on first use; a pool with deadlines; rows as arrays with numbers as numbers. */
import type { Client, ClientConfig, Pool, PoolClient, PoolConfig } from 'pg'
import { HoldfastError } from '../../core/errors.ts'
import { asHoldfastError, mayRepeat } from './errors.ts'

export type Value = string | number | boolean | null | readonly (string | number | boolean | null)[]
export type PgRow = (string | number | boolean | null)[]

/** Whatever can run a statement: the pool, one connection, or the caller's own transaction. */
export interface Executor {
  query(text: string, values: readonly Value[]): Promise<PgRow[]>
  /** Several statements without values. */
  script(text: string): Promise<void>
}

/** The least that a transaction of the caller's must be able to do: a pg client does, and so does a wrapper of any other. */
export interface QueryFunction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly object[] }>
}

type Driver = typeof import('pg')

/** From the application's own copy, so that pools and instrumentation are shared. */
export const loadDriver = async (): Promise<Driver> => {
  try {
    const module = (await import('pg')) as Driver & { readonly default?: Driver }
    return module.default ?? module
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new HoldfastError(
      'DRIVER_MISSING',
      "PostgreSQL needs the package 'pg': npm install pg",
      { package: 'pg' },
      error,
    )
  }
}

const INT8 = 20
const BOOL = 16
const NUMBERS: ReadonlySet<number> = new Set([21, 23, INT8, 700, 701, 1700])

/** Our bigints are milliseconds and counts, well within what a number holds; everything else comes as text. */
const types = {
  getTypeParser: (oid: number) =>
    oid === BOOL ? (text: string) => text === 't' : NUMBERS.has(oid) ? Number : (text: string) => text,
}

export interface Deadlines {
  readonly connect: number
  readonly query: number
}

export const DEADLINES: Deadlines = { connect: 5_000, query: 15_000 }

export const connectionConfig = (url: string, name: string): ClientConfig => ({
  connectionString: url,
  application_name: name,
  connectionTimeoutMillis: DEADLINES.connect,
  // The server gives up first; the client's own deadline is for a server that does not answer at all.
  statement_timeout: DEADLINES.query - 2_000,
  query_timeout: DEADLINES.query,
  keepAlive: true,
})

/** Statement names: the same text has the same name on every connection. */
const names = new Map<string, string>()

const nameOf = (text: string): string => {
  let name = names.get(text)
  if (name === undefined) {
    name = `holdfast_${names.size}`
    names.set(text, name)
  }
  return name
}

const REPEATS = 5

/** Runs statements on a client or a pool of the driver's. */
export const executorOf = (target: Pool | PoolClient | Client, options: { readonly prepare: boolean }): Executor => ({
  async query(text, values) {
    const config = {
      text,
      values: values as unknown[],
      rowMode: 'array' as const,
      types,
      query_timeout: DEADLINES.query,
      ...(options.prepare && values.length > 0 ? { name: nameOf(text) } : null),
    }
    const { rows } = await target.query(config)
    return rows as unknown as PgRow[]
  },
  async script(text) {
    await target.query(text)
  },
})

/** The caller's own transaction, by its query function alone. */
export const callersExecutor = (tx: QueryFunction): Executor => ({
  async query(text, values) {
    const { rows } = await tx.query(text, [...values])
    return rows.map((row) => (Array.isArray(row) ? row : Object.values(row)) as PgRow)
  },
  script: () => Promise.reject(new HoldfastError('INTERNAL', "no scripts in the caller's transaction")),
})

export class Connections {
  readonly pool: Pool
  readonly prepare: boolean
  readonly #address: string
  readonly #isOurs: boolean
  readonly #executor: Executor
  #underWay = 0
  #quiet: (() => void) | null = null
  #closing: Promise<void> | null = null

  constructor(pool: Pool, address: string, options: { readonly prepare: boolean; readonly isOurs: boolean }) {
    this.pool = pool
    this.prepare = options.prepare
    this.#address = address
    this.#isOurs = options.isOurs
    this.#executor = executorOf(pool, options)
    // Without a listener an idle connection that breaks would end the process; the next query tells.
    if (options.isOurs) pool.on('error', () => {})
  }

  static async open(
    url: string,
    options: { readonly prepare: boolean; readonly max: number },
    verify: (client: PoolClient) => Promise<void>,
  ): Promise<Connections> {
    const { Pool: DriverPool } = await loadDriver()
    const config: PoolConfig & { verify: (client: PoolClient, done: (error?: Error) => void) => void } = {
      ...connectionConfig(url, 'holdfast'),
      max: options.max,
      verify: (client, done) => void verify(client).then(() => done(), done),
    }
    return new Connections(new DriverPool(config), withoutSecrets(url), { prepare: options.prepare, isOurs: true })
  }

  /** One statement, on any connection, by itself. */
  query(text: string, values: readonly Value[]): Promise<PgRow[]> {
    return this.repeatable((executor) => executor.query(text, values))
  }

  asExecutor(): Executor {
    return {
      query: (text, values) => this.query(text, values),
      script: (text) => this.repeatable((executor) => executor.script(text)),
    }
  }

  /** Statements that are each a transaction by itself. */
  repeatable<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    return this.#repeat(() => work(this.#executor))
  }

  /** Several statements on one connection, as one transaction. */
  transaction<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    return this.onOne(async (executor) => {
      await executor.query('begin isolation level read committed', [])
      try {
        const result = await work(executor)
        await executor.query('commit', [])
        return result
      } catch (error) {
        await executor.query('rollback', []).catch(() => {})
        throw error
      }
    })
  }

  /** On one connection, which is thrown away when anything went wrong on it. */
  onOne<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    return this.#repeat(async () => {
      const client = await this.pool.connect()
      let isBroken = true
      // A connection that breaks while it is ours is told by the query that was under way.
      const ignore = (): void => {}
      client.on('error', ignore)
      try {
        const result = await work(executorOf(client, { prepare: this.prepare }))
        isBroken = false
        return result
      } finally {
        client.off('error', ignore)
        client.release(isBroken)
      }
    })
  }

  async #repeat<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== null) throw new HoldfastError('STORE_CLOSED', `${this.#address} is closed`)
    this.#underWay++
    try {
      return await this.#tryRepeatedly(work)
    } finally {
      if (--this.#underWay === 0) this.#quiet?.()
    }
  }

  async #tryRepeatedly<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (!mayRepeat(error) || tries === REPEATS) throw asHoldfastError(error, this.#address)
      }
    }
  }

  /** What is under way is answered first; what comes later is refused. */
  close(): Promise<void> {
    this.#closing ??= this.#letGo()
    return this.#closing
  }

  async #letGo(): Promise<void> {
    if (this.#underWay > 0) await new Promise<void>((done) => (this.#quiet = done))
    if (this.#isOurs) await this.pool.end()
  }
}

export const withoutSecrets = (url: string): string => {
  try {
    const { protocol, hostname, port, pathname } = new URL(url)
    return `${protocol}//${hostname}${port === '' ? '' : `:${port}`}${pathname}`
  } catch {
    return 'postgres:'
  }
}
