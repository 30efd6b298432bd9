/** From an address to a client. The only file that knows the stores by name. */
import { hostname } from 'node:os'
import { HoldfastError } from './core/errors.ts'
import { isTooOldToRun, unsupportedNode } from './core/host/node-version.ts'
import { checkDefaults, checkInteger, type SubmitOptions } from './core/submission.ts'
import { checkOptionNames } from './core/values/option-names.ts'
import { MAX_PAYLOAD } from './core/values/payload.ts'
import { refuseUnknownSettings, settingsIn } from './core/values/settings.ts'
import type { RetentionOptions } from './runtime/cleanup/retention.ts'
import { Client } from './runtime/client.ts'
import { type Clock, type Random, systemClock, systemRandom } from './runtime/clock.ts'
import { Contact, watched } from './runtime/contact.ts'
import { HeldLeases } from './runtime/held-leases.ts'
import { findTracing } from './runtime/observe/tracing.ts'
import { StoreTime } from './runtime/store-time.ts'
import { Events } from './runtime/telemetry/events.ts'
import { checkLogger, type Logger, stderrLogger } from './runtime/telemetry/logger.ts'
import type { Store } from './store/store.ts'

type PostgresOptions = import('./store/postgres/store.ts').PostgresOptions
type NatsOptions = import('./store/nats/store.ts').NatsOptions
type S3Options = import('./store/s3/store.ts').S3Options

/** Options of `connect`. */
export interface ConnectOptions {
  /** Make the store when there is none. Default: only for SQLite. */
  readonly create?: boolean
  /** How this client signs what it does; also the beginning of its workers' ids. Default: host and process. */
  readonly name?: string
  /** Largest input or output, in bytes. Default 1 MiB. */
  readonly maxPayload?: number
  /** For every task that this client submits; a definition's own options, and those of a call, come before them. */
  readonly defaults?: ConnectDefaults
  /** How long ended tasks are kept, by status. Default: forever. */
  readonly retention?: RetentionOptions
  /** For postgres:// addresses. */
  readonly postgres?: Omit<PostgresOptions, 'create'>
  /** For s3:// addresses. */
  readonly s3?: Omit<S3Options, 'create'>
  /** For nats:// and tls:// addresses. */
  readonly nats?: Omit<NatsOptions, 'create'>
  /** Where lines go. Default: standard error, without debug lines. */
  readonly logger?: Logger
  /** For tests: time and chance as arguments. */
  readonly clock?: Clock
  /** Default: Math.random. */
  readonly random?: Random
}

const OPTIONS: ReadonlySet<string> = new Set<keyof ConnectOptions>([
  'create',
  'name',
  'maxPayload',
  'defaults',
  'retention',
  'postgres',
  's3',
  'nats',
  'logger',
  'clock',
  'random',
])

/** What every task of a client may have in common. Where it goes and when is the caller's to say. */
export type ConnectDefaults = Pick<
  SubmitOptions,
  'maxRetries' | 'maxAttempts' | 'maxReschedules' | 'retryPolicy' | 'timeout' | 'ttl' | 'priority'
>

const DEFAULTS: ReadonlySet<string> = new Set<keyof ConnectDefaults>([
  'maxRetries',
  'maxAttempts',
  'maxReschedules',
  'retryPolicy',
  'timeout',
  'ttl',
  'priority',
])

/** The store of `connect()` without an address. */
export const DEFAULT_ADDRESS = 'sqlite:./holdfast.db'

/**
 * `sqlite:./file.db`, `postgres://…`, `s3://bucket/prefix`, `nats://host/bucket`, `memory:`, or a Store of your own. Without
 * arguments: HOLDFAST_URL, or a file in the current folder. An address that is undefined or empty is refused, also in HOLDFAST_URL: it is
 * a variable that was never set, and its tasks would go to a file that no worker reads.
 */
export function connect(): Promise<Client>
export function connect(address: string | Store, options?: ConnectOptions): Promise<Client>
export async function connect(...given: [address?: string | Store, options?: ConnectOptions]): Promise<Client> {
  const [named, options = {}] = given.length === 0 ? [addressOfEnvironment()] : given
  // A file of secrets ends with a line break, which would become a part of the name of a SQLite file.
  const address = typeof named === 'string' ? named.trim() : named
  if (address === undefined || address === null || address === '')
    throw new HoldfastError(
      'INVALID_OPTION',
      `the address is ${address === '' ? 'empty' : address}: is its environment variable set? connect() without arguments uses HOLDFAST_URL, or ${DEFAULT_ADDRESS}`,
      { field: 'url' },
    )
  if (typeof address !== 'string' && typeof address.insert !== 'function')
    throw new HoldfastError('INVALID_OPTION', 'the address must be a text, or a store', { field: 'url' })
  checkOptionNames(options, OPTIONS, 'connect')
  const unsupported = unsupportedNode(process.versions.node)
  if (unsupported !== null && isTooOldToRun(process.versions.node))
    throw new HoldfastError('STORE_UNAVAILABLE', unsupported)
  const defaults = options.defaults ?? {}
  checkDefaults(defaults, DEFAULTS, 'defaults')
  const { clock = systemClock, random = systemRandom, logger = stderrLogger } = options
  checkLogger(logger)
  if (unsupported !== null) logger.warn(unsupported)
  const maxPayload = checkInteger(options.maxPayload ?? MAX_PAYLOAD, 'maxPayload', 1, 1_073_741_824)
  const opened = typeof address === 'string' ? await openStore(address, options, logger, clock) : address
  const contact = new Contact(clock)
  const store = watched(opened, contact)
  const time = new StoreTime(store, clock)
  await time.anchor()
  const name = options.name ?? `${hostname()}/${process.pid}`
  return new Client(
    {
      store,
      contact,
      held: new HeldLeases(),
      clock,
      random,
      time,
      events: new Events(logger),
      logger,
      name,
      maxPayload,
      defaults,
      tracing: await findTracing(),
    },
    options.retention,
  )
}

/** An empty variable is one that a deployment forgot to fill in. */
const addressOfEnvironment = (): string => {
  const address = process.env['HOLDFAST_URL'] ?? DEFAULT_ADDRESS
  if (address !== '') return address
  const how = `name a store in it, or unset it for ${DEFAULT_ADDRESS}`
  throw new HoldfastError('INVALID_OPTION', `HOLDFAST_URL is set, but empty: ${how}`, { field: 'url' })
}

/** Of an address: everything but its secrets. */
const shown = (address: string): string =>
  address.replace(/(\/\/[^/@:?]*):[^/?]*@/, '$1@').replace(/([?&](?:password|secret|token)[^=&]*=)[^&]*/gi, '$1…')

const openStore = async (address: string, options: ConnectOptions, logger: Logger, clock: Clock): Promise<Store> => {
  const [, scheme, rest] = /^([a-z0-9+]+):(.*)$/is.exec(address) ?? []
  switch (scheme?.toLowerCase()) {
    case 'memory': {
      refuseUnknownSettings(address, settingsIn(rest!), [])
      const { openMemory } = await import('./store/memory/store.ts')
      return openMemory({ wall: () => clock.wall() })
    }
    case 'sqlite':
    case 'file': {
      // Before anything of SQLite is loaded: a Node that is too old does not have it, or has one that can corrupt the file.
      const tooOld = unsupportedNode(process.versions.node)
      if (tooOld !== null) throw new HoldfastError('STORE_UNAVAILABLE', `sqlite: ${tooOld}`, { field: 'url' })
      const { openSqlite } = await import('./store/sqlite/store.ts')
      const onCreated = (made: string): void => logger.info(`created a store at ${made}`)
      const onWarning = (message: string): void => logger.warn(message)
      return openSqlite(sqlitePath(rest!, address), { create: options.create ?? true, onCreated, onWarning })
    }
    case 'postgres':
    case 'postgresql': {
      const { openPostgres } = await import('./store/postgres/store.ts')
      return openPostgres(address, {
        onWarning: (message) => logger.warn(message),
        onCreated: () => logger.info(`created a store at ${shown(address)}`),
        ...options.postgres,
        create: options.create ?? false,
      })
    }
    case 's3': {
      const { openS3 } = await import('./store/s3/store.ts')
      return openS3(address, {
        onWarning: (message) => logger.warn(message),
        onCreated: () => logger.info(`created a store at ${shown(address)}`),
        ...options.s3,
        create: options.create ?? false,
      })
    }
    case 'nats':
    case 'tls': {
      const { openNats } = await import('./store/nats/store.ts')
      return openNats(address, {
        onWarning: (message) => logger.warn(message),
        onCreated: () => logger.info(`created a store at ${shown(address)}`),
        ...options.nats,
        create: options.create ?? false,
      })
    }
    default:
      throw new HoldfastError(
        'INVALID_OPTION',
        `'${shown(address)}' is not the address of a store: write sqlite:./holdfast.db, postgres://…, s3://bucket/prefix, nats://host/bucket or memory:`,
        { field: 'url' },
      )
  }
}

/** `sqlite:./a.db`, `sqlite:/a.db` and `sqlite:///a.db` alike. */
const sqlitePath = (rest: string, address: string): string => {
  refuseUnknownSettings(address, settingsIn(rest), [])
  const path = rest.startsWith('//') ? rest.slice(2) : rest
  if (path === '' || path === ':memory:')
    throw new HoldfastError(
      'INVALID_OPTION',
      `'${address}' names no file: write sqlite:./holdfast.db, or memory: for tests`,
      { field: 'url' },
    )
  return path
}
