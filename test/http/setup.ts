/** An HTTP handler on a memory store, and a caller with a token. */
import { onTestFinished } from 'vitest'
import { createHttpHandler, EVERYTHING, type HttpHandlerOptions, Tokens } from '../../src/http/index.ts'
import { type Client, connect, silentLogger } from '../../src/index.ts'

export const TOKEN = 'the-token-of-an-operator-0123456789'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  readonly body: any
}

export interface Caller {
  readonly client: Client
  readonly fetch: (request: Request) => Promise<Response>
  /** As when the server stops. */
  close(): void
  /** With the token, unless `headers` say otherwise. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
}

export const HOST = 'http://localhost:8484'

export const openHandler = async (options: Partial<HttpHandlerOptions> = {}, address = 'memory:'): Promise<Caller> => {
  const client = await connect(address, { logger: silentLogger, name: 'test' })
  const tokens = new Tokens([{ token: TOKEN, rights: EVERYTHING }])
  const handler = createHttpHandler(client, { authorize: tokens.authorize, tokens, ...options })
  onTestFinished(async () => {
    handler.close()
    await client.close()
  })
  const fetch = async (request: Request): Promise<Response> => handler.fetch(request)
  return {
    client,
    fetch,
    close: () => handler.close(),
    call: async (method, path, body, headers = {}) => {
      const response = await fetch(requestOf(method, path, body, { authorization: `Bearer ${TOKEN}`, ...headers }))
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.startsWith('application/json')
      return {
        status: response.status,
        headers: response.headers,
        body: isJson && text !== '' ? JSON.parse(text) : text,
      }
    },
  }
}

/** Headers with an empty value are left out. */
export const requestOf = (
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Request => {
  const hasBody = method === 'POST' || method === 'PATCH'
  const all = Object.entries({ ...(hasBody && { 'content-type': 'application/json' }), ...headers })
  return new Request(path.startsWith('http') ? path : `${HOST}${path}`, {
    method,
    headers: Object.fromEntries(all.filter(([, value]) => value !== '')),
    ...(hasBody && { body: typeof body === 'string' ? body : JSON.stringify(body ?? {}) }),
  })
}

export const API = '/api/v1'
