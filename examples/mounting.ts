/** Mounts the HTTP API in an application: as a route handler (Next, Remix, SvelteKit), and in Hono. `node examples/mounting.ts [sqlite:./q.db]` */

import { connect } from 'holdfast'
import { createHttpHandler, EVERYTHING, Tokens } from 'holdfast/http'
import { connectRemote } from 'holdfast/remote'
import { Hono } from 'hono'

const client = await connect(process.argv[2] ?? 'memory:')
const token = 'replace-this-by-a-secret-0123456789'
const tokens = new Tokens([{ token, rights: EVERYTHING }])
const queue = createHttpHandler(client, { authorize: tokens.authorize, tokens, basePath: '/queue', hosts: 'any' })

// Next: app/queue/[...path]/route.ts. One function serves every method.
export const GET = async (request: Request): Promise<Response> => queue.fetch(request)
export { GET as DELETE, GET as PATCH, GET as POST }

// Hono. Paths stay whole: the handler knows its basePath.
const app = new Hono().all('/queue/*', (c) => queue.fetch(c.req.raw))

for (const [name, fetch] of [
  ['route handler', GET],
  ['Hono', async (request: Request) => app.fetch(request)],
] as const) {
  const remote = connectRemote({ url: 'http://app.example.com/queue', token, fetch })
  const task = await remote.submit('hello', { name })
  await client
    .worker()
    .handle('hello', (input) => `hello, ${(input as { name: string }).name}`)
    .drain()
  console.log(await remote.wait(task))
}
queue.close()
await client.close()
