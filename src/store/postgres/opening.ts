/** Opens a store: finds the address, checks the server's settings, and prepares the schema. */
import { randomUUID } from 'node:crypto'
import type { ClientConfig, Pool } from 'pg'
import { HoldfastError } from '../../core/errors.ts'
import { checkInteger } from '../../core/submission.ts'
import { parseDuration } from '../../core/values/durations.ts'
import { forDriver } from './address-settings.ts'
import { type ConnectionPolicy, type Connections, withoutSecrets } from './connection.ts'
import type { Password } from './password-channel.ts'
import { migrate, readMeta, SCHEMA_VERSION, schemaVersion } from './schema.ts'
import type { PostgresOptions } from './store.ts'

export interface Place {
  /** The settings for one more connection. */
  readonly config: ClientConfig
  /** The same settings for another thread, without `password`. */
  readonly portable: ClientConfig
  /** The password if it is a function: it stays on this thread, and the keeper's thread asks for it. */
  readonly password: Password | null
  /** The address without secrets. */
  readonly address: string
}

/** Taken from the caller's pool, if there is one; otherwise from the address. */
export const placeOf = (url: string | null, pool: Pool | undefined): Place => {
  if (pool !== undefined) return placeOfPool(pool)
  if (url === null) throw new HoldfastError('INVALID_OPTION', 'postgres needs an address or a pool', { field: 'url' })
  const config = { connectionString: forDriver(url) }
  return { config, portable: config, password: null, address: withoutSecrets(url) }
}

const placeOfPool = ({ options }: Pool): Place => {
  const { connectionString, host, port, user, password, database, ssl, stream } = options
  const config = Object.fromEntries(
    // pg makes the password non-enumerable, so that it is not logged.
    Object.entries({ connectionString, host, port, user, password, database, ssl, stream }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as ClientConfig
  const address =
    connectionString === undefined
      ? `postgres://${user === undefined ? '' : `${user}@`}${host ?? 'localhost'}:${port ?? 5432}/${database ?? ''}`
      : withoutSecrets(connectionString)
  const isAsked = typeof password === 'function'
  const { password: _, ...others } = config
  return {
    config,
    portable: isAsked ? others : config,
    password: isAsked ? (password as Password) : null,
    address,
  }
}

/** Connections of the pool. */
export const poolSizeOf = ({ max = 6 }: PostgresOptions): number => checkInteger(max, 'max', 1, 10_000)

const CONNECT_DEADLINE = 5_000
const SHORTEST_DEADLINE = 100

export const connectionPolicyOf = ({ prepare = true, queryTimeout = '15s' }: PostgresOptions): ConnectionPolicy => {
  const query = parseDuration(queryTimeout, 'queryTimeout')
  if (query < SHORTEST_DEADLINE)
    throw new HoldfastError('INVALID_OPTION', `queryTimeout is ${query} ms; the minimum is ${SHORTEST_DEADLINE} ms`, {
      field: 'queryTimeout',
    })
  return { prepare, deadlines: { connect: Math.min(query, CONNECT_DEADLINE), query } }
}

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/

/** The only name in a statement that is not a parameter; quoted. */
export const checkSchema = (schema: string): string => {
  if (typeof schema === 'string' && SCHEMA_NAME.test(schema)) return `"${schema}"`
  throw new HoldfastError(
    'INVALID_OPTION',
    `schema: '${schema}' must be 1 to 63 characters of a-z 0-9 _, not beginning with a digit`,
    { field: 'schema' },
  )
}

/** Checks settings that Holdfast sets on its own connections but must not change on the caller's. */
export const checkSettings = async (connections: Connections, { onWarning }: PostgresOptions): Promise<void> => {
  const [row] = await connections.query(
    `select current_setting('synchronous_commit'), current_setting('fsync'), current_setting('default_transaction_isolation')`,
    [],
  )
  const [commit, fsync, isolation] = row as [string, string, string]
  if (commit === 'off')
    throw new HoldfastError(
      'INVALID_OPTION',
      'synchronous_commit is off on these connections, so that accepted tasks could be lost: alter role … set synchronous_commit = on',
      { field: 'pool' },
    )
  if (fsync === 'off') onWarning?.('this PostgreSQL runs with fsync = off: a power cut can lose everything')
  if (isolation !== 'read committed')
    onWarning?.(`these connections default to ${isolation}: claims will have to be repeated often`)
}

/** Brings the schema to the version of this release, if allowed, and returns the identity of the store. */
export const prepareSchema = async (
  connections: Connections,
  address: string,
  schema: string,
  { create = false, migrate: mayMigrate = true, onCreated }: PostgresOptions,
  isOfAddress: boolean,
): Promise<string> => {
  const found = await schemaVersion(connections.asExecutor(), schema)
  // In the address that an application shares with prisma. Our tables among its own would be drift to its migrations.
  if (found === 0 && isOfAddress && schema === '"public"')
    throw new HoldfastError(
      'INVALID_OPTION',
      "the address says schema=public, as prisma writes it for itself: leave that out for Holdfast, or name its schema with connect(url, { postgres: { schema: 'holdfast' } })",
      { field: 'schema' },
    )
  if (found === 0 && !create) {
    throw new HoldfastError(
      'STORE_NOT_FOUND',
      `${address}: there is no Holdfast store in schema ${schema}: run \`holdfast init URL\`, or connect with create: true`,
    )
  }
  if (found > 0 && found < SCHEMA_VERSION && !mayMigrate) {
    throw new HoldfastError(
      'SCHEMA_OLDER',
      `schema ${schema} has version ${found}, this release needs ${SCHEMA_VERSION}: run \`holdfast migrate URL\``,
      { found, needed: SCHEMA_VERSION },
    )
  }
  if (found < SCHEMA_VERSION) {
    const from = await connections.onOne((executor) => migrate(executor, schema, randomUUID()))
    if (from === 0) onCreated?.()
  }
  const identity = await readMeta(connections.asExecutor(), schema, 'identity')
  if (identity === null) throw new HoldfastError('STORE_CORRUPT', `schema ${schema} has no identity`)
  return identity
}
