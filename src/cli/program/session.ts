/** One invocation: the global options, the client it opens, and where its log lines go. */
import { hostname, userInfo } from 'node:os'
import {
  type Client,
  type ConnectOptions,
  connect,
  HoldfastError,
  type Logger,
  type RetentionOptions,
} from '../../index.ts'
import { err, paint, printable } from '../output/render.ts'
import { addressOf } from './config.ts'

export interface GlobalOptions {
  /** Default: HOLDFAST_URL, the config file, or sqlite:./holdfast.db. */
  readonly url?: string
  readonly json?: boolean
}

export interface OpenOptions {
  /** Only verbs that add work may create a file: a typo in an address must not look like an empty queue. */
  readonly create: boolean
  /** The name of this client in histories. Default: the user and host. */
  readonly name?: string
  /** The verb reports each run itself, so the log must not repeat it. */
  readonly tellsRuns?: boolean
  readonly retention?: RetentionOptions
}

/** Opens the store, does the work, and always closes the store. */
export const withClient = async <T>(
  options: GlobalOptions,
  open: OpenOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> => {
  const client = await openClient(options, {
    // Otherwise connect decides, and creates a file. `holdfast init` creates the store on a server.
    ...(open.create ? null : { create: false }),
    ...(open.name === undefined ? null : { name: open.name }),
    ...(open.retention === undefined ? null : { retention: open.retention }),
    ...(open.tellsRuns ? { logger: withoutRuns(logger(options)) } : null),
  })
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

/** The caller closes it. */
export const openClient = async (options: GlobalOptions, more: ConnectOptions): Promise<Client> => {
  const { value } = await addressOf(options)
  refuseMemory(value)
  return connect(value, { name: operator(), logger: logger(options), ...more })
}

/** A memory store ends with its process: a task submitted from a shell would be lost, and a list would always be empty. */
export const refuseMemory = (address: string | undefined): void => {
  if (address?.toLowerCase().startsWith('memory:')) {
    throw new HoldfastError(
      'INVALID_OPTION',
      "url: 'memory:' is lost when this command ends: name a persistent store, such as sqlite:./holdfast.db",
      { field: 'url' },
    )
  }
}

/** `ann@host`: names the operator in histories. */
const operator = (): string => {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return `${process.getuid?.() ?? 'unknown'}@${hostname()}`
  }
}

/** Log lines about failed runs have an attempt and an error. */
const withoutRuns = (all: Logger): Logger => {
  const isRun = (facts?: Record<string, unknown>): boolean =>
    facts?.['attempt'] !== undefined && facts['error'] !== undefined
  return {
    ...all,
    warn: (message, facts) => (isRun(facts) ? undefined : all.warn(message, facts)),
    error: (message, facts) => (isRun(facts) ? undefined : all.error(message, facts)),
  }
}

/** Log lines go to standard error: plain text, or one object per line with --json, where info lines are omitted. */
const logger = ({ json = false }: GlobalOptions): Logger => {
  const line = (level: string, message: string, facts?: Record<string, unknown>): void => {
    const suffix = facts === undefined ? '' : ` ${JSON.stringify(facts)}`
    const head = level === 'info' ? '' : `${paint(level === 'warn' ? 'yellow' : 'red', level, process.stderr)}: `
    err(json ? JSON.stringify({ level, message, ...facts }) : `${head}${printable(message + suffix)}`)
  }
  return {
    debug: () => {},
    info: (message, facts) => (json ? undefined : line('info', message, facts)),
    warn: (message, facts) => line('warn', message, facts),
    error: (message, facts) => line('error', message, facts),
  }
}
