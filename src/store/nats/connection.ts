/** The way to the server: from an address to a connection that never gives up, with the calls that JetStream understands. */
import { readFile } from 'node:fs/promises'
import type { JetStreamManager } from '@nats-io/jetstream'
import type { ConnectionOptions, NatsConnection, TlsOptions } from '@nats-io/transport-node'
import { HoldfastError } from '../../core/errors.ts'
import { asHoldfastError } from './errors.ts'
import { Requests } from './requests.ts'

export interface NatsConnectionOptions {
  readonly user?: string
  readonly password?: string
  readonly token?: string
  /** A .creds file. */
  readonly credentials?: string
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
  /** Without secrets. */
  readonly address: string
}

export interface Connected {
  readonly nc: NatsConnection
  readonly requests: Requests
  readonly jsm: JetStreamManager
}

/** How long one call may take before its outcome is open. */
const DEADLINE = 3_000
const PING_EVERY = 5_000
/** After this, and up to as much again by chance, the next try. */
const RECONNECT_WAIT = 250
const OLDEST = [2, 9] as const

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
    address,
  }
}

const loadDriver = async () => {
  try {
    const [transport, jetstream] = await Promise.all([import('@nats-io/transport-node'), import('@nats-io/jetstream')])
    return { transport, jetstream }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
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

export const connectTo = async (place: Place, options: NatsConnectionOptions): Promise<Connected> => {
  const { transport, jetstream } = await loadDriver()
  const { credentials, token, tls = place.isEncrypted ? {} : undefined } = options
  const user = options.user ?? place.user
  const password = options.password ?? place.password
  const settings: ConnectionOptions = {
    servers: [...place.servers],
    name: 'holdfast',
    timeout: DEADLINE,
    pingInterval: PING_EVERY,
    // A worker that has been cut off for a night goes on in the morning.
    maxReconnectAttempts: -1,
    reconnectDelayHandler: () => RECONNECT_WAIT * (1 + Math.random()),
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
    ...(user === undefined ? null : { user }),
    ...(password === undefined ? null : { pass: password }),
    ...(token === undefined ? null : { token }),
    ...(tls === undefined ? null : { tls }),
    ...(credentials === undefined
      ? null
      : { authenticator: transport.credsAuthenticator(await readFile(credentials)) }),
  }
  try {
    const nc = await transport.connect(settings)
    try {
      checkVersion(nc, place.address)
      const api = { timeout: DEADLINE, checkAPI: false }
      const requests = new Requests(nc, transport.headers, DEADLINE)
      return { nc, requests, jsm: await jetstream.jetstreamManager(nc, api) }
    } catch (error) {
      await nc.close()
      throw error
    }
  } catch (error) {
    throw asHoldfastError(error, place.address)
  }
}
