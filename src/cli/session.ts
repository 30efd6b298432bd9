/** One invocation: the global options, the client it opens, and where its log lines go. */
import { hostname, userInfo } from 'node:os'
import { type Client, type ConnectOptions, connect, HoldfastError, type Logger } from '../index.ts'
import { addressOf } from './config.ts'
import { err, paint, printable } from './render.ts'

export interface GlobalOptions {
  /** Left out: HOLDFAST_URL, the config file, or sqlite:./holdfast.db. */
  readonly url?: string
  readonly json?: boolean
}

export interface OpenOptions {
  /** Only verbs that bring work may make a file: a typo in an address must not look like an empty queue. */
  readonly create: boolean
  /** How this client signs what it does. Default: the person at the keyboard. */
  readonly name?: string
}

/** Opens the store, does the work, and lets go of the store whatever happens. */
export const withClient = async <T>(
  options: GlobalOptions,
  open: OpenOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> => {
  const client = await openClient(options, {
    // Left to connect otherwise, which makes a file; a server's store is made by `holdfast init`.
    ...(open.create ? null : { create: false }),
    ...(open.name === undefined ? null : { name: open.name }),
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

/** A memory store ends with the process that made it: what a shell puts there is lost, and a look finds nothing. */
export const refuseMemory = (address: string | undefined): void => {
  if (address?.toLowerCase().startsWith('memory:')) {
    throw new HoldfastError(
      'INVALID_OPTION',
      "url: 'memory:' ends with this command: name a store that stays, such as sqlite:./holdfast.db",
      { field: 'url' },
    )
  }
}

/** `ann@host`: who it was, in the history of what they moved. */
const operator = (): string => {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return `${process.getuid?.() ?? 'somebody'}@${hostname()}`
  }
}

/** Log lines go to standard error: plain for people, one object a line with --json, where good news is left out. */
const logger = ({ json = false }: GlobalOptions): Logger => {
  const line = (level: string, message: string, facts?: Record<string, unknown>): void => {
    const told = facts === undefined ? '' : ` ${JSON.stringify(facts)}`
    const head = level === 'info' ? '' : `${paint(level === 'warn' ? 'yellow' : 'red', level, process.stderr)}: `
    err(json ? JSON.stringify({ level, message, ...facts }) : `${head}${printable(message + told)}`)
  }
  return {
    debug: () => {},
    info: (message, facts) => (json ? undefined : line('info', message, facts)),
    warn: (message, facts) => line('warn', message, facts),
    error: (message, facts) => line('error', message, facts),
  }
}
