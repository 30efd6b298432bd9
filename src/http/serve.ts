/** Runs the HTTP handler as a server. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import type { HttpHandler } from './handler.ts'

export interface Listening {
  readonly port: number
  /** Accepts no new connections, ends streams, and answers requests in progress. */
  close(): Promise<void>
}

/** A request that takes longer than this to arrive is cut off, so that slow clients cannot hold connections. */
const SLOWEST_HEADERS = 10_000
const SLOWEST_REQUEST = 30_000
const PATIENCE = 5_000
const MOST_CONNECTIONS = 1_000
/** Longer than most clients keep an idle connection: the client closes first, so no request is lost on a closing connection. */
const KEEP_ALIVE = 65_000

export const listen = async (
  handler: HttpHandler,
  { host, port }: { host: string; port: number },
): Promise<Listening> => {
  const server = createAdaptorServer({
    fetch: (request) => handler.fetch(request),
    overrideGlobalObjects: false,
    serverOptions: { headersTimeout: SLOWEST_HEADERS, requestTimeout: SLOWEST_REQUEST, keepAliveTimeout: KEEP_ALIVE },
  }) as Server
  server.maxConnections = MOST_CONNECTIONS
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
      // Requests still in progress by then are cut off.
      const last = setTimeout(() => server.closeAllConnections(), PATIENCE)
      return closed.finally(() => clearTimeout(last))
    },
  }
}
