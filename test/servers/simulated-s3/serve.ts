/** The simulated S3 as an HTTP server: a latency for every request, counts of what was asked, control over HTTP. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Answer, refusal } from './answers.ts'
import { CONTROL, type CountRow, type SimulatedS3Options } from './options.ts'
import { readRequest, type S3Request } from './request.ts'
import { SimulatedState } from './state.ts'

const EMPTY = Buffer.alloc(0)

const withBody = (message: IncomingMessage, done: (body: Buffer) => void): void => {
  let body: Buffer = EMPTY
  message.on('data', (chunk: Buffer) => {
    body = body.length === 0 ? chunk : Buffer.concat([body, chunk])
  })
  message.on('end', () => done(body))
}

export const serve = (options: SimulatedS3Options, port: number, ready: (port: number) => void): void => {
  const state = new SimulatedState(options)
  let counts = new Map<string, { row: Omit<CountRow, 'count'>; count: number }>()
  let date = { second: 0, text: '' }

  const dateText = (): string => {
    const second = Math.floor(state.now() / 1_000)
    if (second !== date.second) date = { second, text: new Date(second * 1_000).toUTCString() }
    return date.text
  }

  const count = ({ bucket, by, kind, folder }: S3Request, status: number): void => {
    const name = `${bucket} ${by} ${kind} ${status} ${folder}`
    const known = counts.get(name)
    if (known === undefined) counts.set(name, { row: { bucket, by, kind, status, folder }, count: 1 })
    else known.count++
  }

  const send = (response: ServerResponse, { status, headers, body = EMPTY }: Answer): void => {
    const length = status === 204 || status === 304 ? null : { 'content-length': Buffer.byteLength(body) }
    response.writeHead(status, { ...headers, ...length, date: dateText() }).end(body)
  }

  /** Carried out in the middle of the latency, as between a client and a server that is as far in both directions. */
  const carryOut = (request: S3Request, response: ServerResponse): void => {
    const fault = state.faultFor(request)
    if (fault?.what === 'hang') {
      count(request, 0)
      return
    }
    const answer =
      fault?.what === 'status' ? refusal(fault.status ?? 503, fault.code ?? 'SlowDown') : state.answer(request)
    count(request, fault?.what === 'lost-reply' ? 0 : answer.status)
    const reply = (): void => {
      if (fault?.what === 'lost-reply') response.destroy()
      else send(response, answer)
    }
    const { latency } = state.options
    if (latency > 0) setTimeout(reply, Math.ceil(latency / 2))
    else reply()
  }

  const control = (path: string, body: Buffer, response: ServerResponse): void => {
    if (path === 'options') state.change(JSON.parse(body.toString()) as SimulatedS3Options)
    const rows = [...counts.values()].map(({ row, count: n }) => ({ ...row, count: n }))
    if (path === 'reset') counts = new Map()
    const [what, bucket, prefix = ''] = path.split('?').map(decodeURIComponent)
    const said = what === 'objects' ? state.bucket(bucket!).contents(prefix) : rows
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said))
  }

  const server = createServer({ keepAliveTimeout: 60_000 }, (message, response) => {
    const { method, url, headers } = message
    withBody(message, (body) => {
      if (url!.startsWith(CONTROL)) {
        control(url!.slice(CONTROL.length), body, response)
        return
      }
      const request = readRequest(method!, url!, headers, body)
      const { latency } = state.options
      if (latency > 0) setTimeout(carryOut, Math.floor(latency / 2), request, response)
      else carryOut(request, response)
    })
  })
  server.listen(port, '127.0.0.1', () => ready((server.address() as { port: number }).port))
}
