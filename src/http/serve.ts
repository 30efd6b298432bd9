/** Runs the HTTP handler as a server. */
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer, getRequestListener } from '@hono/node-server'
import { HoldfastError } from '../index.ts'
import { limitConnections } from './connections.ts'
import type { HttpHandler } from './handler.ts'

/** A server that listens, and how to stop it. */
export interface Listening {
  /** The one that was asked for, or the free one that was found. */
  readonly port: number
  /** Accepts no new connections, ends streams, answers claims that wait, and finishes requests in progress. */
  close(): Promise<void>
}

/** Where a server listens, and how many connections it takes. */
export interface ListenOptions {
  /** The address to listen on: '127.0.0.1', or '0.0.0.0' for all. */
  readonly host: string
  /** 0: any free one, which `port` of the result tells. */
  readonly port: number
  /** Maximum number of connections from one address, so that one client cannot keep the others out; null: no limit, for a server behind a proxy. Default 200. */
  readonly perAddress?: number | null
}

/** A request that takes longer than this to arrive is cut off, so that slow clients cannot hold connections. */
const SLOWEST_HEADERS = 5_000
const SLOWEST_REQUEST = 30_000
/** By default, Node looks for slow requests every 30 s. */
const LOOK_EVERY = 1_000
const PATIENCE = 5_000
/** While it stops. */
const IDLE_EVERY = 50
const PER_ADDRESS = 200
/** Longer than most clients keep an idle connection: the client closes first, so no request is lost on a closing connection. */
const KEEP_ALIVE = 65_000

/** What frameworks on Node's server leave on a request. */
interface Mounted extends IncomingMessage {
  /** The whole path, where the framework has removed its prefix from `url` (Express, Nest). */
  readonly originalUrl?: string
  /** A body that the framework has read already. */
  readonly body?: unknown
  rawBody?: Buffer
}

/** A handler as a listener of Node's server, to mount it in Express, Fastify or Nest. Its `basePath` is the whole path to it. */
export const nodeListener = (handler: HttpHandler): RequestListener => {
  const answer = getRequestListener((request) => handler.fetch(request), { overrideGlobalObjects: false })
  return (request: Mounted, response) => {
    if (request.originalUrl !== undefined) request.url = request.originalUrl
    if (request.readableEnded && request.rawBody === undefined && request.body !== undefined)
      request.rawBody = Buffer.from(JSON.stringify(request.body))
    void answer(request, response)
  }
}

/** Serves a handler with the server of Node. */
export const listen = async (handler: HttpHandler, options: ListenOptions): Promise<Listening> => {
  const { host, port, perAddress = PER_ADDRESS } = options
  if (perAddress !== null && !(Number.isInteger(perAddress) && perAddress > 0))
    throw new HoldfastError('INVALID_OPTION', 'perAddress must be a whole number above 0, or null', {
      field: 'perAddress',
    })
  const server = createAdaptorServer({
    fetch: (request) => handler.fetch(request),
    overrideGlobalObjects: false,
    serverOptions: {
      headersTimeout: SLOWEST_HEADERS,
      requestTimeout: SLOWEST_REQUEST,
      keepAliveTimeout: KEEP_ALIVE,
      connectionsCheckingInterval: LOOK_EVERY,
    },
  }) as Server
  limitConnections(server, perAddress)
  await new Promise<void>((done, fail) => {
    server.once('error', fail)
    server.listen({ host, port }, done)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      handler.close()
      const closed = new Promise<void>((done) => server.close(() => done()))
      server.closeIdleConnections()
      // A connection is idle once its last request is answered.
      const idle = setInterval(() => server.closeIdleConnections(), IDLE_EVERY)
      // Requests still in progress by then are cut off.
      const last = setTimeout(() => server.closeAllConnections(), PATIENCE)
      return closed.finally(() => {
        clearInterval(idle)
        clearTimeout(last)
      })
    },
  }
}
