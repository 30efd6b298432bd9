/** The door as a server of its own. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import type { Door } from './door.ts'

export interface Listening {
  readonly port: number
  /** No new connections; streams end, requests under way are answered. */
  close(): Promise<void>
}

/** A request that takes longer than this to arrive is cut off: nobody holds a connection by writing slowly. */
const SLOWEST_HEADERS = 10_000
const SLOWEST_REQUEST = 30_000
const PATIENCE = 5_000
const MOST_CONNECTIONS = 1_000
/** Longer than most clients keep an idle connection: they close it first, and no request is lost on one that is closing. */
const KEEP_ALIVE = 65_000

export const listen = async (door: Door, { host, port }: { host: string; port: number }): Promise<Listening> => {
  const server = createAdaptorServer({
    fetch: (request) => door.fetch(request),
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
      door.close()
      const closed = new Promise<void>((done) => server.close(() => done()))
      server.closeIdleConnections()
      // What is still under way then has had its time.
      const last = setTimeout(() => server.closeAllConnections(), PATIENCE)
      return closed.finally(() => clearTimeout(last))
    },
  }
}
