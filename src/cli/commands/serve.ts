/** `holdfast serve`: runs the HTTP handler as a server until a signal stops it. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import {
  type Authorize,
  behindProxy,
  createHttpHandler,
  dashboardPages,
  EVERYTHING,
  everybody,
  type HttpHandler,
  listen,
  Tokens,
  VIEWER,
} from '../../http/index.ts'
import { HoldfastError } from '../../index.ts'
import { createMetrics } from '../../metrics/index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { err, out, printable } from '../output/render.ts'
import { integer } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'
import { stopSignal } from '../program/stop-signal.ts'
import { tokenIn, tokensIn } from './shared/token-file.ts'
import { limitYoungGeneration } from './shared/young-generation.ts'

interface Options extends GlobalOptions {
  readonly port?: string
  readonly host?: string
  readonly hostName?: readonly string[]
  readonly tokenFile?: string
  readonly tokens?: string
  /** False with --no-token. */
  readonly token: boolean
  readonly proxyHeader?: string
  readonly trustProxy?: boolean
  readonly perAddress?: string
  readonly readOnly?: boolean
  readonly redact?: readonly string[]
}

interface Guard {
  readonly authorize: Authorize
  readonly tokens?: Tokens
  /** A token generated for this run, printed once. */
  readonly made?: string
}

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  const { host = '127.0.0.1' } = options
  const port = integer(options.port ?? '8484')
  if (!(port >= 0 && port <= 65_535)) throw refused('--port', 'must be 0 to 65535')
  const { made, ...guard } = guardOf(options, host)
  const limit = perAddressOf(options)
  limitYoungGeneration()
  return withClient(options, { create: true, name: `serve@${hostname()}` }, async (client) => {
    const pages = dashboardPages()
    const handler: HttpHandler = createHttpHandler(client, {
      ...guard,
      hosts: [...(options.hostName ?? []), ...(isLoopback(host) || isAny(host) ? [] : [bracketed(host)])],
      trustProxy: options.trustProxy ?? false,
      readOnly: options.readOnly ?? false,
      redact: options.redact ?? [],
      ...(pages === null ? null : { pages }),
      charts: client.charts().start({ record: !options.readOnly }),
      metrics: () => metrics.text(),
      logger: { debug: () => {}, info: () => {}, warn: complain, error: complain },
    })
    const metrics = createMetrics(client, { of: 'store', follow: handler.onChange })
    const server = await listen(handler, { host, port, ...limit }).catch((error: Error) => {
      throw refused('--port', `cannot listen on ${host} port ${port}: ${error.message}`)
    })
    const stopped = stopSignal()
    const url = `http://${bracketed(isAny(host) ? 'localhost' : host)}:${server.port}/`
    if (options.json)
      out(JSON.stringify({ event: 'listening', url, address: client.address, ...(made && { token: made }) }))
    else {
      out(`serving ${client.address} on ${url}`)
      if (made !== undefined) out(`open    ${url}login?token=${made}`)
    }
    // Workers over HTTP cannot fire schedules or reclaim leases, so this process does.
    if (!options.readOnly) client.monitor().start()
    await stopped
    metrics.close()
    await server.close()
    return EXIT.ok
  })
}

/** A path may contain any character. */
const complain = (message: string): void => err(printable(message))

const guardOf = (options: Options, host: string): Guard => {
  if (options.proxyHeader !== undefined) return { authorize: behindProxy(options.proxyHeader) }
  // Without the line break with which a file of secrets ends: a header cannot carry it.
  const given = options.tokenFile === undefined ? process.env['HOLDFAST_TOKEN']?.trim() : tokenIn(options.tokenFile)
  const viewer = process.env['HOLDFAST_VIEWER_TOKEN']?.trim()
  const named = options.tokens === undefined ? [] : tokensIn(options.tokens)
  if (!given && named.length === 0 && !isLoopback(host)) {
    throw refused(
      '--host',
      `${host} is reachable by others: give a token (HOLDFAST_TOKEN, --token-file or --tokens), or --proxy-header for a proxy that authenticates users`,
    )
  }
  if (!options.token) {
    if (!isLoopback(host)) throw refused('--no-token', 'is for loopback only')
    return { authorize: everybody }
  }
  const made = given || named.length > 0 ? undefined : randomBytes(32).toString('base64url')
  const token = given || made
  const tokens = new Tokens([
    ...(token ? [{ token, rights: EVERYTHING, name: 'operator' }] : []),
    ...(viewer ? [{ token: viewer, rights: VIEWER, name: 'viewer' }] : []),
    ...named,
  ])
  return { authorize: tokens.authorize, tokens, ...(made !== undefined && { made }) }
}

/** Behind a proxy all callers have its address. */
const perAddressOf = ({ perAddress, trustProxy, proxyHeader }: Options): { readonly perAddress?: number | null } => {
  if (perAddress === undefined) return trustProxy || proxyHeader !== undefined ? { perAddress: null } : {}
  const most = integer(perAddress)
  if (!(most >= 0)) throw refused('--per-address', 'must be a whole number; 0: no limit')
  return { perAddress: most === 0 ? null : most }
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
const isAny = (host: string): boolean => host === '0.0.0.0' || host === '::'
const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
