/** Connections: loads the driver on first use, adds deadlines to the pool, returns rows as arrays with bigints as numbers. */
import type { Client, ClientConfig, Pool, PoolClient, PoolConfig } from 'pg'
import { HoldfastError, isHoldfastError } from '../../core/errors.ts'
import { isModuleMissing } from '../../core/host/missing-module.ts'
import { asHoldfastError, mayRepeat } from './errors.ts'
import { inlined } from './literals.ts'

export type Value = string | number | boolean | null | readonly (string | number | boolean | null)[]
export type PgRow = (string | number | boolean | null)[]

/** Anything that can run a statement: the pool, one connection, or the caller's transaction. */
export interface Executor {
  query(text: string, values: readonly Value[]): Promise<PgRow[]>
  /** Runs several statements without values. */
  script(text: string): Promise<void>
  /** One statement as a transaction of read committed, whatever the connection has as its default. */
  readCommitted?(text: string, values: readonly Value[]): Promise<PgRow[]>
}

type Driver = typeof import('pg')

/** Loads the application's copy, so that pools and instrumentation are shared. */
export const loadDriver = async (): Promise<Driver> => {
  try {
    const module = (await import('pg')) as Driver & { readonly default?: Driver }
    return module.default ?? module
  } catch (error) {
    if (!isModuleMissing(error)) throw error
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

/** Our bigints are milliseconds and counts, which fit a number. Everything else is returned as text. */
const types = {
  getTypeParser: (oid: number) =>
    oid === BOOL ? (text: string) => text === 't' : NUMBERS.has(oid) ? Number : (text: string) => text,
}

interface Deadlines {
  readonly connect: number
  readonly query: number
}

/** How connections are used, both Holdfast's and the caller's. */
export interface ConnectionPolicy {
  /** Use named statements. Without them nothing is left behind on a connection, which PgBouncer shares with other clients. */
  readonly prepare: boolean
  readonly deadlines: Deadlines
}

const KEEP_ALIVE_AFTER = 10_000

/** `from` is an address or the settings of a pool. */
export const connectionConfig = (
  from: ClientConfig,
  name: string,
  { prepare, deadlines }: ConnectionPolicy,
): ClientConfig => ({
  ...from,
  application_name: name,
  connectionTimeoutMillis: deadlines.connect,
  query_timeout: deadlines.query,
  // The server gives up first. The client's deadline is for a server that does not answer at all.
  ...(prepare ? { statement_timeout: Math.ceil(deadlines.query * 0.9) } : null),
  keepAlive: true,
  keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER,
})

/**
 * Overrides the defaults of role and database: an acknowledged write is on disk, concurrent claims do not fail each other,
 * names resolve as written, plans are not JIT-compiled for a millisecond of work, batches lock rows in the order in which they
 * name them (a hash join would use the table's order), and a process that stops inside a transaction does not hold its locks
 * forever.
 */
const SESSION = `
  select pg_catalog.set_config('synchronous_commit', case pg_catalog.current_setting('synchronous_commit')
      when 'off' then 'on' else pg_catalog.current_setting('synchronous_commit') end, false),
    pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
    pg_catalog.set_config('search_path', 'pg_catalog', false),
    pg_catalog.set_config('jit', 'off', false),
    pg_catalog.set_config('enable_hashjoin', 'off', false),
    pg_catalog.set_config('enable_mergejoin', 'off', false),
    pg_catalog.set_config('idle_in_transaction_session_timeout', '30s', false)`

/** Runs once per connection of ours. Behind PgBouncer the session is shared with other clients, so it is not changed. */
export const prepareSession = async (client: Client | PoolClient, { prepare }: ConnectionPolicy): Promise<void> => {
  if (prepare) await client.query(SESSION)
}

/** Statement names by text: the same text has the same name on every connection. */
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
const REPEAT_WITHIN = 20

type Target = Pick<Client, 'query'> | Pool

/** Runs statements on a client or a pool of the driver's. */
export const executorOf = (target: Target, { prepare, deadlines }: ConnectionPolicy): Executor => ({
  async query(text, values) {
    const config = {
      text,
      values: values as unknown[],
      rowMode: 'array' as const,
      types,
      query_timeout: deadlines.query,
      ...(prepare && values.length > 0 ? { name: nameOf(text) } : null),
    }
    const { rows } = await target.query(config)
    return rows as unknown as PgRow[]
  },
  async script(text) {
    await target.query(text)
  },
})

/** Adds a deadline for getting a connection to the caller's pool, which may not have one. */
const withDeadline = (pool: Pool, { connect }: Deadlines): Pick<Pool, 'connect'> => ({
  connect: () =>
    new Promise<PoolClient>((done, failed) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        failed(new Error(`timeout: no connection of the pool became free within ${connect} ms`))
      }, connect)
      pool.connect().then((client) => {
        clearTimeout(timer)
        if (isLate) client.release()
        else done(client)
      }, failed)
    }),
})

export interface ConnectionsOptions extends ConnectionPolicy {
  readonly isOurs: boolean
  /** Checked before each call: rejects if this is no longer the same store. */
  readonly guard: Guard
}

export interface Guard {
  readonly isDue: boolean
  check(executor: Executor): Promise<void>
}

const ignore = (): void => {}

export class Connections {
  readonly #pool: Pool
  readonly #source: Pick<Pool, 'connect'>
  readonly #address: string
  readonly #options: ConnectionsOptions
  readonly #executor: Executor
  #underWay = 0
  #quiet: (() => void) | null = null
  #closing: Promise<void> | null = null

  constructor(pool: Pool, address: string, options: ConnectionsOptions) {
    this.#pool = pool
    this.#address = address
    this.#options = options
    this.#source = options.isOurs ? pool : withDeadline(pool, options.deadlines)
    this.#executor = options.isOurs
      ? executorOf(pool, options)
      : { query: (text, values) => this.#once((executor) => executor.query(text, values)), script: refuseScript }
    // Without a listener, an idle connection that breaks would end the process. The next query reports the error.
    pool.on('error', ignore)
  }

  static async open(
    config: ClientConfig,
    address: string,
    options: ConnectionPolicy & { readonly max: number; readonly guard: Guard },
  ): Promise<Connections> {
    const { Pool: DriverPool } = await loadDriver()
    const verify = async (client: PoolClient): Promise<void> => {
      // For the life of the connection: while it is being verified, the pool does not listen, and a disconnect would end the process.
      client.on('error', ignore)
      await prepareSession(client, options)
      await options.guard.check(executorOf(client, { ...options, prepare: false }))
    }
    const poolConfig: PoolConfig & { verify: (client: PoolClient, done: (error?: Error) => void) => void } = {
      ...connectionConfig(config, 'holdfast', options),
      max: options.max,
      // A script that has finished can exit without close().
      allowExitOnIdle: true,
      verify: (client, done) => void verify(client).then(() => done(), done),
    }
    return new Connections(new DriverPool(poolConfig), address, { ...options, isOurs: true })
  }

  /** Runs one statement on any connection. */
  query(text: string, values: readonly Value[]): Promise<PgRow[]> {
    return this.repeatable((executor) => executor.query(text, values))
  }

  asExecutor(): Executor {
    return {
      query: (text, values) => this.query(text, values),
      script: refuseScript,
      readCommitted: (text, values) => this.#repeat(() => this.#readCommitted(text, values)),
    }
  }

  /** In one message: a process that stops in the middle leaves nothing open on the server. */
  async #readCommitted(text: string, values: readonly Value[]): Promise<PgRow[]> {
    return this.#onClient(async (client) => {
      const config = {
        text: `begin isolation level read committed; ${inlined(text, values)}; commit`,
        rowMode: 'array' as const,
        types,
        query_timeout: this.#options.deadlines.query,
      }
      // The driver's types know one result; there is one for each statement.
      const results = (await client.query(config)) as unknown as readonly { readonly rows: PgRow[] }[]
      return results[1]!.rows
    })
  }

  /** Runs statements each of which is a separate transaction. */
  repeatable<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    return this.#repeat(() => work(this.#executor))
  }

  /** Runs several statements on one connection as one transaction. */
  transaction<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    return this.onOne(async (executor) => {
      await executor.query('begin isolation level read committed', [])
      try {
        const result = await work(executor)
        await executor.query('commit', [])
        return result
      } catch (error) {
        await executor.query('rollback', []).catch(ignore)
        throw error
      }
    })
  }

  /** Runs on one connection, which is discarded after an error. */
  onOne<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    return this.#repeat(() => this.#once(work))
  }

  #once<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    return this.#onClient((client) => work(executorOf(client, this.#options)))
  }

  async #onClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#source.connect()
    let isBroken = true
    // If the connection breaks while we hold it, the query in flight reports it.
    client.on('error', ignore)
    try {
      const result = await work(client)
      isBroken = false
      return result
    } finally {
      client.off('error', ignore)
      client.release(isBroken)
    }
  }

  async #repeat<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== null) throw new HoldfastError('STORE_CLOSED', `${this.#address} is closed`)
    this.#underWay++
    try {
      if (this.#options.guard.isDue) await this.#tryRepeatedly(() => this.#options.guard.check(this.#executor))
      return await this.#tryRepeatedly(work)
    } catch (error) {
      // The tables existed when we connected.
      if (isHoldfastError(error, 'STORE_NOT_FOUND'))
        await this.#tryRepeatedly(() => this.#options.guard.check(this.#executor))
      throw error
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
        // A random delay, so that two transactions that conflicted do not meet again.
        await new Promise((done) => setTimeout(done, Math.random() * REPEAT_WITHIN * tries))
      }
    }
  }

  /** Waits for the calls in flight and refuses later ones. */
  close(): Promise<void> {
    this.#closing ??= this.#letGo()
    return this.#closing
  }

  async #letGo(): Promise<void> {
    if (this.#underWay > 0) await new Promise<void>((done) => (this.#quiet = done))
    if (this.#options.isOurs) await this.#pool.end()
    else this.#pool.off('error', ignore)
  }
}

const refuseScript = (): Promise<never> =>
  Promise.reject(new HoldfastError('INTERNAL', 'a script needs a connection of its own'))

export const withoutSecrets = (url: string): string => {
  try {
    const { protocol, username, host, pathname } = new URL(url)
    return `${protocol}//${username === '' ? '' : `${username}@`}${host}${pathname}`
  } catch {
    return 'postgres:'
  }
}
