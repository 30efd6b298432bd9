/** Stands between a client and a server that speaks over TCP, and does to their connections what networks do. */
import { connect, createServer, type Socket } from 'node:net'

/**
 * `pass`: as if it were not there. `refuse`: new connections end at once. `blackhole`: connections stay and new ones are
 * accepted, but no byte arrives any more, in either direction (half-open).
 */
export type ProxyMode = 'pass' | 'refuse' | 'blackhole'

export interface TcpProxy {
  /** The address given, through the proxy. */
  readonly url: string
  mode: ProxyMode
  /** Each way takes so many milliseconds longer. */
  delay: number
  /** Ends all connections with a reset. How many there were. */
  reset(): number
  /**
   * The next request that matches is forwarded and carried out, but its reply never arrives: the connection is reset
   * instead. Resolves when that has happened.
   */
  loseReplyTo(request: RegExp): Promise<void>
  close(): Promise<void>
}

interface Losing {
  readonly request: RegExp
  readonly done: () => void
}

/** ReadyForQuery: the server has answered everything, and what was to be committed is. */
const isWholeReply = (bytes: Buffer): boolean => {
  const at = bytes.length - 6
  return at >= 0 && bytes[at] === 0x5a && bytes.readInt32BE(at + 1) === 5
}

/** Sends on in order, each when its time has come, also while the delay changes. */
const delayed = (to: Socket): ((bytes: Buffer, delay: number) => void) => {
  const waiting: { readonly due: number; readonly bytes: Buffer }[] = []
  const send = (): void => {
    while (waiting[0] !== undefined && waiting[0].due <= performance.now()) to.write(waiting.shift()!.bytes)
    if (waiting[0] !== undefined) setTimeout(send, Math.max(0, waiting[0].due - performance.now()))
  }
  return (bytes, delay) => {
    if (delay === 0 && waiting.length === 0) return void to.write(bytes)
    waiting.push({ due: performance.now() + delay, bytes })
    if (waiting.length === 1) setTimeout(send, delay)
  }
}

/** `isWhole`: the server has carried out the request; by default as PostgreSQL says it. */
export const startProxy = async (target: string, isWhole = isWholeReply): Promise<TcpProxy> => {
  const { hostname, port } = new URL(target)
  const pairs = new Set<readonly [Socket, Socket]>()
  let losing: Losing | null = null

  const server = createServer((client) => {
    if (proxy.mode === 'refuse') return void client.resetAndDestroy()
    const upstream = connect(Number(port), hostname)
    const pair = [client, upstream] as const
    pairs.add(pair)
    const drop = (): void => {
      pairs.delete(pair)
      client.destroy()
      upstream.destroy()
    }
    for (const socket of pair) socket.on('error', drop).on('close', drop).setNoDelay(true)
    let lost: Losing | null = null
    const [toServer, toClient] = [delayed(upstream), delayed(client)]
    client.on('data', (bytes) => {
      if (proxy.mode === 'blackhole') return
      if (losing?.request.test(bytes.toString('latin1'))) {
        lost = losing
        losing = null
      }
      toServer(bytes, proxy.delay)
    })
    upstream.on('data', (bytes) => {
      if (proxy.mode === 'blackhole') return
      if (lost === null) return toClient(bytes, proxy.delay)
      if (!isWhole(bytes)) return
      client.resetAndDestroy()
      lost.done()
    })
  })

  const proxy: TcpProxy = {
    url: '',
    mode: 'pass',
    delay: 0,
    reset() {
      const all = [...pairs]
      for (const [client] of all) client.resetAndDestroy()
      return all.length
    },
    loseReplyTo: (request) =>
      new Promise((done) => {
        losing = { request, done }
      }),
    async close() {
      for (const [client, upstream] of pairs) {
        client.destroy()
        upstream.destroy()
      }
      await new Promise((done) => server.close(done))
    },
  }
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address() as { readonly port: number }
  const through = new URL(target)
  through.hostname = '127.0.0.1'
  through.port = String(address.port)
  return Object.assign(proxy, { url: through.href })
}
