/** Connects to a NATS server and keeps reconnecting. Parses the address of the store. */
import { readFileSync } from 'node:fs'
import type { JetStreamManager } from '@nats-io/jetstream'
import type { ConnectionOptions, MsgHdrs, NatsConnection, TlsOptions } from '@nats-io/transport-node'
import { HoldfastError } from '../../../core/errors.ts'
import { isModuleMissing } from '../../../core/host/missing-module.ts'
import { refuseUnknownSettings } from '../../../core/values/settings.ts'
import { asHoldfastError } from './errors.ts'
import { type Prefixes, prefixesFor, setPrefixes } from './prefixes.ts'
import { Requests } from './requests.ts'

export interface NatsConnectionOptions {
  readonly user?: string
  readonly password?: string
  readonly token?: string
  /** A .creds file. It is read for every new connection, so a replaced file takes effect with the next one. */
  readonly credentials?: string
  /** The prefix of the subjects for replies. Default `_INBOX`. */
  readonly inboxPrefix?: string
  /** The JetStream domain of the store, if it is not the server's own. */
  readonly domain?: string
  readonly tls?: TlsOptions
}

export interface Place {
  readonly servers: readonly string[]
  readonly isEncrypted: boolean
  readonly bucket: string
  readonly user: string | undefined
  readonly password: string | undefined
  readonly replicas: number | undefined
  readonly monitor: string | undefined
  readonly inboxPrefix: string | undefined
  readonly domain: string | undefined
  /** Contains no secrets. */
  readonly address: string
}

export interface Connected {
  readonly nc: NatsConnection
  readonly requests: Requests
  readonly newHeaders: () => MsgHdrs
  readonly jsm: JetStreamManager
  /** The subjects of a stream that have messages. */
  subjectsIn(stream: string, filter: string): Promise<string[]>
  onReconnect(listener: () => void): void
}

/** A call that takes longer rejects, and its outcome is open. */
const DEADLINE = 3_000
const PING_EVERY = 5_000
/** The delay before a reconnect. A random part of up to the same length is added. */
const RECONNECT_WAIT = 250
const OLDEST = [2, 9] as const
const SETTINGS = ['replicas', 'monitor', 'domain', 'inboxPrefix']
/** A subject, or part of one, without wildcards. */
const PREFIX = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/
const DOMAIN = /^[A-Za-z0-9_-]+$/

const refuse = (address: string, why: string): never => {
  throw new HoldfastError('INVALID_OPTION', `'${address}' ${why}: write nats://host:4222/bucket`, { field: 'url' })
}

/** `nats://user:password@host:4222,other:4222/bucket?replicas=3&monitor=http://host:8222` */
export const placeOf = (url: string): Place => {
  const parts = /^(nats|tls):\/\/(?:([^@/]*)@)?([^/?]+)\/?([^?]*)(?:\?(.*))?$/.exec(url)
  if (parts === null) return refuse(url.replace(/\/\/.*@/, '//'), 'is not the address of a NATS server')
  const [, scheme, secret, hosts, bucket, query] = parts
  const address = `${scheme}://${hosts}/${bucket}`
  if (!/^[A-Za-z0-9_-]+$/.test(bucket!)) return refuse(address, 'names no bucket of letters, digits, _ and -')
  const [user, password] = (secret ?? '').split(':').map(decodeURIComponent)
  const options = new URLSearchParams(query ?? '')
  refuseUnknownSettings(address, options.keys(), SETTINGS)
  const replicas = options.get('replicas')
  if (replicas !== null && !/^[1-5]$/.test(replicas))
    return refuse(address, `asks for ${replicas} replicas, not 1 to 5`)
  return {
    servers: hosts!.split(','),
    isEncrypted: scheme === 'tls',
    bucket: bucket!,
    user: user || undefined,
    password,
    replicas: replicas === null ? undefined : Number(replicas),
    monitor: options.get('monitor') ?? undefined,
    inboxPrefix: options.get('inboxPrefix') ?? undefined,
    domain: options.get('domain') ?? undefined,
    address,
  }
}

const loadDriver = async () => {
  try {
    // Each awaited by itself: so bundlers see that a package may be missing.
    const transport = await import('@nats-io/transport-node')
    const jetstream = await import('@nats-io/jetstream')
    return { transport, jetstream }
  } catch (error) {
    if (!isModuleMissing(error)) throw error
    throw new HoldfastError(
      'DRIVER_MISSING',
      'the NATS store needs two packages: npm install @nats-io/transport-node @nats-io/jetstream',
    )
  }
}

const checkVersion = (nc: NatsConnection, address: string): void => {
  const version = nc.info?.version ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return
  throw new HoldfastError('INVALID_OPTION', `${address} is nats-server ${version}: Holdfast needs 2.9 or later`, {
    field: 'url',
  })
}

/** Options win over the address. */
const prefixesOf = (place: Place, options: NatsConnectionOptions): Prefixes => {
  const { inboxPrefix = place.inboxPrefix, domain = place.domain } = options
  for (const [field, value, form] of [
    ['inboxPrefix', inboxPrefix, PREFIX],
    ['domain', domain, DOMAIN],
  ] as const)
    if (value !== undefined && !form.test(value))
      throw new HoldfastError('INVALID_OPTION', `${field}: '${value}' must be made of A-Z a-z 0-9 _ -`, { field })
  return prefixesFor(inboxPrefix, domain)
}

/** Read for every connection, also for a reconnect hours later. */
const credentialsIn = (file: string): (() => Uint8Array) => {
  const read = (): Uint8Array => {
    try {
      return readFileSync(file)
    } catch (error) {
      const why = `credentials: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`
      throw new HoldfastError('INVALID_OPTION', why, { field: 'credentials' }, error)
    }
  }
  // Reports a missing file now, and not after a failed connection.
  read()
  return read
}

const reconnectsOf = (nc: NatsConnection): Connected['onReconnect'] => {
  const listeners = new Set<() => void>()
  const watch = async (): Promise<void> => {
    for await (const { type } of nc.status()) if (type === 'reconnect') for (const listener of listeners) listener()
  }
  void watch()
  return (listener) => void listeners.add(listener)
}

export const connectTo = async (place: Place, options: NatsConnectionOptions): Promise<Connected> => {
  const { transport, jetstream } = await loadDriver()
  const prefixes = prefixesOf(place, options)
  const { credentials, token, tls = place.isEncrypted ? {} : undefined } = options
  const user = options.user ?? place.user
  const password = options.password ?? place.password
  const settings: ConnectionOptions = {
    servers: [...place.servers],
    name: 'holdfast',
    timeout: DEADLINE,
    pingInterval: PING_EVERY,
    // A worker that was cut off overnight continues in the morning.
    maxReconnectAttempts: -1,
    reconnectDelayHandler: () => RECONNECT_WAIT * (1 + Math.random()),
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
    inboxPrefix: prefixes.inbox,
    ...(user === undefined ? null : { user }),
    ...(password === undefined ? null : { pass: password }),
    ...(token === undefined ? null : { token }),
    ...(tls === undefined ? null : { tls }),
    ...(credentials === undefined ? null : { authenticator: transport.credsAuthenticator(credentialsIn(credentials)) }),
  }
  try {
    const nc = await transport.connect(settings)
    try {
      checkVersion(nc, place.address)
      setPrefixes(nc, prefixes)
      const api = { timeout: DEADLINE, checkAPI: false, apiPrefix: prefixes.api }
      const requests = new Requests(nc, transport.headers, DEADLINE)
      const jsm = await jetstream.jetstreamManager(nc, api)
      const subjectsIn = async (stream: string, filter: string): Promise<string[]> => {
        const { state } = await jsm.streams.info(stream, { subjects_filter: filter })
        return Object.keys(state.subjects ?? {})
      }
      return { nc, requests, newHeaders: transport.headers, jsm, subjectsIn, onReconnect: reconnectsOf(nc) }
    } catch (error) {
      await nc.close()
      throw error
    }
  } catch (error) {
    throw asHoldfastError(error, place.address)
  }
}
