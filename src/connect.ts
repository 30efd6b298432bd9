/** From an address to a client. The only file that knows the stores by name. */
import { hostname } from 'node:os'
import { HoldfastError } from './core/errors.ts'
import { MAX_PAYLOAD } from './core/payload.ts'
import { checkInteger } from './core/submission.ts'
import { Client } from './runtime/client.ts'
import { type Clock, type Random, systemClock, systemRandom } from './runtime/clock.ts'
import { Events } from './runtime/events.ts'
import { type Logger, stderrLogger } from './runtime/logger.ts'
import type { RetentionOptions } from './runtime/retention.ts'
import { StoreTime } from './runtime/store-time.ts'
import { findTracing } from './runtime/tracing.ts'
import type { Store } from './store/store.ts'

type PostgresOptions = import('./store/postgres/store.ts').PostgresOptions
type NatsOptions = import('./store/nats/store.ts').NatsOptions
type S3Options = import('./store/s3/store.ts').S3Options

export interface ConnectOptions {
  /** Make the store when there is none. Default: only for SQLite. */
  readonly create?: boolean
  /** How this client signs what it does; also the beginning of its workers' ids. Default: host and process. */
  readonly name?: string
  /** Largest input or output, in bytes. Default 1 MiB. */
  readonly maxPayload?: number
  /** How long ended tasks are kept, by status. Default: for ever. */
  readonly retention?: RetentionOptions
  /** For postgres:// addresses. */
  readonly postgres?: Omit<PostgresOptions, 'create'>
  /** For s3:// addresses. */
  readonly s3?: Omit<S3Options, 'create'>
  /** For nats:// and tls:// addresses. */
  readonly nats?: Omit<NatsOptions, 'create'>
  readonly logger?: Logger
  /** For tests: time and chance as arguments. */
  readonly clock?: Clock
  readonly random?: Random
}

export const DEFAULT_ADDRESS = 'sqlite:./holdfast.db'

/** `sqlite:./file.db`, `postgres://…`, `s3://bucket/prefix`, `nats://host/bucket`, `memory:`, or a Store of your own. The address may also come from HOLDFAST_URL. */
export const connect = async (
  address: string | Store = process.env['HOLDFAST_URL'] || DEFAULT_ADDRESS,
  options: ConnectOptions = {},
): Promise<Client> => {
  const { clock = systemClock, random = systemRandom, logger = stderrLogger } = options
  const maxPayload = checkInteger(options.maxPayload ?? MAX_PAYLOAD, 'maxPayload', 1, 1_073_741_824)
  const store = typeof address === 'string' ? await openStore(address, options, logger, clock) : address
  const time = new StoreTime(store, clock)
  await time.anchor()
  const name = options.name ?? `${hostname()}/${process.pid}`
  return new Client(
    { store, clock, random, time, events: new Events(logger), logger, name, maxPayload, tracing: await findTracing() },
    options.retention,
  )
}

const openStore = async (address: string, options: ConnectOptions, logger: Logger, clock: Clock): Promise<Store> => {
  const [, scheme, rest] = /^([a-z0-9+]+):(.*)$/is.exec(address) ?? []
  switch (scheme?.toLowerCase()) {
    case 'memory': {
      const { openMemory } = await import('./store/memory/store.ts')
      return openMemory({ wall: () => clock.wall() })
    }
    case 'sqlite':
    case 'file': {
      const { openSqlite } = await import('./store/sqlite/store.ts')
      const onCreated = (made: string): void => logger.info(`made a new store at ${made}`)
      return openSqlite(sqlitePath(rest!, address), { create: options.create ?? true, onCreated })
    }
    case 'postgres':
    case 'postgresql': {
      const { openPostgres } = await import('./store/postgres/store.ts')
      return openPostgres(address, {
        onWarning: (message) => logger.warn(message),
        onCreated: () => logger.info('made a new store in that database'),
        ...options.postgres,
        create: options.create ?? false,
      })
    }
    case 's3': {
      const { openS3 } = await import('./store/s3/store.ts')
      return openS3(address, {
        onCreated: () => logger.info('made a new store in that bucket'),
        ...options.s3,
        create: options.create ?? false,
      })
    }
    case 'nats':
    case 'tls': {
      const { openNats } = await import('./store/nats/store.ts')
      return openNats(address, {
        onWarning: (message) => logger.warn(message),
        onCreated: () => logger.info('made a new store on that server'),
        ...options.nats,
        create: options.create ?? false,
      })
    }
    default:
      throw new HoldfastError(
        'INVALID_OPTION',
        `'${address}' is not the address of a store: write sqlite:./holdfast.db, postgres://…, s3://bucket/prefix, nats://host/bucket or memory:`,
        { field: 'url' },
      )
  }
}

/** `sqlite:./a.db`, `sqlite:/a.db` and `sqlite:///a.db` alike. */
const sqlitePath = (rest: string, address: string): string => {
  const path = rest.startsWith('//') ? rest.slice(2) : rest
  if (path === '' || path === ':memory:')
    throw new HoldfastError(
      'INVALID_OPTION',
      `'${address}' names no file: write sqlite:./holdfast.db, or memory: for tests`,
      { field: 'url' },
    )
  return path
}
