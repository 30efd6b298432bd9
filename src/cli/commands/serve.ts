/** `holdfast serve`: runs the HTTP handler as a server until a signal stops it. */
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
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
  type Token,
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

interface Options extends GlobalOptions {
  readonly port?: string
  readonly host?: string
  readonly hostName?: readonly string[]
  readonly tokenFile?: string
  /** False with --no-token. */
  readonly token: boolean
  readonly proxyHeader?: string
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
  return withClient(options, { create: true, name: `serve@${hostname()}` }, async (client) => {
    const pages = dashboardPages()
    const handler: HttpHandler = createHttpHandler(client, {
      ...guard,
      hosts: [...(options.hostName ?? []), ...(isLoopback(host) || isAny(host) ? [] : [bracketed(host)])],
      readOnly: options.readOnly ?? false,
      redact: options.redact ?? [],
      ...(pages === null ? null : { pages }),
      metrics: () => metrics.text(),
      logger: { debug: () => {}, info: () => {}, warn: complain, error: complain },
    })
    const metrics = createMetrics(client, { of: 'store', follow: handler.onChange })
    const server = await listen(handler, { host, port }).catch((error: Error) => {
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
  const given = options.tokenFile === undefined ? process.env['HOLDFAST_TOKEN'] : tokenIn(options.tokenFile)
  if (!given && !isLoopback(host)) {
    throw refused(
      '--host',
      `${host} is reachable by others: give a token (HOLDFAST_TOKEN or --token-file), or --proxy-header for a proxy that authenticates users`,
    )
  }
  if (!options.token) {
    if (!isLoopback(host)) throw refused('--no-token', 'is for loopback only')
    return { authorize: everybody }
  }
  const token = given || randomBytes(32).toString('base64url')
  const viewer = process.env['HOLDFAST_VIEWER_TOKEN']
  const known: Token[] = [{ token, rights: EVERYTHING }, ...(viewer ? [{ token: viewer, rights: VIEWER }] : [])]
  const tokens = new Tokens(known)
  return { authorize: tokens.authorize, tokens, ...(given ? null : { made: token }) }
}

const tokenIn = (file: string): string => {
  try {
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0)
      throw refused('--token-file', `${file} is readable by other users: chmod 600 ${file}`)
    return readFileSync(file, 'utf8').split('\n', 1)[0]!.trim()
  } catch (error) {
    if (error instanceof HoldfastError) throw error
    throw refused('--token-file', `cannot be read: ${(error as Error).message}`)
  }
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
const isAny = (host: string): boolean => host === '0.0.0.0' || host === '::'
const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
