/**
 * Stands between a client and an S3 server, and does to their requests what networks and busy servers do. What happens to
 * the nth request is decided by the seed and n alone. The Host header passes unchanged, so signatures still hold: the
 * client signs for the proxy's address, and the server checks against what it was sent.
 */
import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Random } from '../../src/testing/random.ts'
import { type S3Keys, signedHeaders } from './signed-request.ts'

/**
 * Each from 0 to 1. `unavailable`: 500 or 503 instead of being carried out. `conflict`: 409 to a conditional write instead of
 * being carried out. `lostReply`: a write is carried out, its answer never arrives. `truncated`: the answer's body ends
 * before its time. `slow`: the answer is late. `swallowed`: nothing is carried out and nothing is ever answered.
 */
export interface FaultRates {
  readonly unavailable?: number
  readonly conflict?: number
  readonly lostReply?: number
  readonly truncated?: number
  readonly slow?: number
  readonly swallowed?: number
}

export type Fault = keyof FaultRates

export interface FaultProxyOptions {
  readonly seed: number
  /** Of the server itself, without path. */
  readonly endpoint: string
  readonly rates?: FaultRates
  /** How late slow answers are, at the most, in ms. */
  readonly lateness?: number
  /** Lists come in pages of this many keys; the request is then signed anew with these keys. */
  readonly pages?: { readonly of: number; readonly keys: S3Keys }
}

export interface FaultProxy {
  /** The endpoint, through the proxy. */
  readonly endpoint: string
  /** May be changed at any time. */
  rates: FaultRates
  /** How often each has happened. */
  readonly faults: Readonly<Record<Fault, number>>
  /** How often each method was asked for; lists are GETs of a bucket and counted as LIST. */
  readonly requests: ReadonlyMap<string, number>
  close(): Promise<void>
}

/** In this order, and of several the first that can happen to the request does. */
const FAULTS: readonly Fault[] = ['swallowed', 'unavailable', 'conflict', 'lostReply', 'truncated', 'slow']

const isWrite = ({ method }: IncomingMessage): boolean => method !== 'GET' && method !== 'HEAD'
const isConditional = ({ headers }: IncomingMessage): boolean => 'if-match' in headers || 'if-none-match' in headers
const isList = ({ method, url }: IncomingMessage): boolean => method === 'GET' && /[?&]list-type=2(&|$)/.test(url!)

const canHappen = (fault: Fault, request: IncomingMessage): boolean => {
  if (fault === 'conflict') return isWrite(request) && isConditional(request)
  if (fault === 'lostReply') return isWrite(request)
  // A HEAD has no body that could be cut.
  if (fault === 'truncated') return request.method === 'GET'
  return true
}

const refuse = (response: ServerResponse, status: number, code: string): void => {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>by the fault proxy</Message></Error>`
  response.writeHead(status, { 'content-type': 'application/xml', date: new Date().toUTCString() }).end(body)
}

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

const wholeBody = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

export const startFaultProxy = async (options: FaultProxyOptions): Promise<FaultProxy> => {
  const { endpoint, lateness = 500, pages } = options
  const random = new Random(options.seed)
  const faults: Record<Fault, number> = {
    unavailable: 0,
    conflict: 0,
    lostReply: 0,
    truncated: 0,
    slow: 0,
    swallowed: 0,
  }
  const requests = new Map<string, number>()
  const agent = new Agent({ keepAlive: true })

  /** As many dice for each request, whatever happens: the nth has always the same. */
  const decide = (request: IncomingMessage): { fault: Fault | undefined; chance: number } => {
    const dice = FAULTS.map(() => random.next())
    const chance = random.next()
    const fault = FAULTS.find((name, i) => dice[i]! < (proxy.rates[name] ?? 0) && canHappen(name, request))
    return { fault, chance }
  }

  const asForwarded = (request: IncomingMessage): { path: string; headers: IncomingMessage['headers'] } => {
    if (pages === undefined || !isList(request)) return { path: request.url!, headers: request.headers }
    const url = new URL(request.url!, endpoint)
    url.searchParams.set('max-keys', String(pages.of))
    return { path: `${url.pathname}${url.search}`, headers: signedHeaders({ method: 'GET', url }, pages.keys) }
  }

  const forward = async (request: IncomingMessage): Promise<Answer> => {
    const { hostname, port } = new URL(endpoint)
    const body = await wholeBody(request)
    return new Promise((done, failed) => {
      const onward = send({ hostname, port, method: request.method, ...asForwarded(request), agent }, (answer) => {
        wholeBody(answer).then(
          (whole) => done({ status: answer.statusCode!, headers: answer.headers, body: whole }),
          failed,
        )
      })
      onward.once('error', failed)
      onward.end(body)
    })
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const kind = isList(request) ? 'LIST' : request.method!
    requests.set(kind, (requests.get(kind) ?? 0) + 1)
    const { fault, chance } = decide(request)
    if (fault) faults[fault]++
    if (fault === 'swallowed') return void request.resume()
    if (fault === 'unavailable' || fault === 'conflict') {
      await wholeBody(request)
      if (fault === 'conflict') return refuse(response, 409, 'ConcurrentModification')
      return chance < 0.5 ? refuse(response, 500, 'InternalError') : refuse(response, 503, 'SlowDown')
    }
    const { status, headers, body } = await forward(request)
    if (fault === 'lostReply') return void request.socket.destroy()
    if (fault === 'slow') await new Promise((late) => setTimeout(late, chance * lateness))
    response.writeHead(status, { ...headers, connection: 'keep-alive' })
    if (fault !== 'truncated') return void response.end(request.method === 'HEAD' ? undefined : body)
    // The header promised all of it.
    response.write(body.subarray(0, Math.floor(body.length * chance)), () => request.socket.destroy())
  }

  const server = createServer((request, response) => {
    // A server that is away looks the same through the proxy.
    serve(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const proxy: FaultProxy = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    rates: options.rates ?? {},
    faults,
    requests,
    async close() {
      agent.destroy()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
  return proxy
}
