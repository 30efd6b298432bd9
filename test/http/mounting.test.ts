/** The handler inside frameworks that run on Node's server: they remove their prefix from the path, and may have read the body. */
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { createHttpHandler, everybody, nodeListener } from '../../src/http/index.ts'
import { connect, silentLogger } from '../../src/index.ts'

/** Serves a handler under /queue as a framework would, and returns the address of its API. */
const mount = async (framework: (listener: RequestListener) => RequestListener): Promise<string> => {
  const client = await connect('memory:', { logger: silentLogger })
  const handler = createHttpHandler(client, { authorize: everybody, basePath: '/queue' })
  const server = createServer(framework(nodeListener(handler))).listen(0, '127.0.0.1')
  await new Promise((done) => server.once('listening', done))
  onTestFinished(async () => {
    handler.close()
    server.close()
    server.closeAllConnections()
    await client.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/queue/api/v1`
}

const submit = (api: string): Promise<Response> =>
  fetch(`${api}/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'mail', input: { to: 'ann' } }),
  })

test.each<readonly [what: string, framework: (listener: RequestListener) => RequestListener]>([
  ['passes requests on as they are', (listener) => listener],
  [
    'removes its prefix from the path',
    (listener) => (request, response) => {
      const whole = request.url!
      listener(Object.assign(request, { originalUrl: whole, url: whole.replace('/queue', '') }), response)
    },
  ],
  [
    'has parsed the body',
    (listener) => async (request, response) => {
      const body = request.method === 'POST' ? await json(request) : undefined
      listener(Object.assign(request as IncomingMessage, { body }), response)
    },
  ],
])('a framework that %s submits and shows a task', async (_, framework) => {
  const api = await mount(framework)
  const answered = await submit(api)
  expect(answered.status).toBe(201)
  const { id } = (await answered.json()) as { id: string }
  expect(await (await fetch(`${api}/tasks/${id}`)).json()).toMatchObject({ id, input: { to: 'ann' } })
})
