/** Calls an API that allows ten requests a second: all workers together stay below it, and one answer 429 stops everybody. Run it: node examples/api-client.ts */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, defineTask, RescheduleError } from 'holdfast'

/** In place of the API. The first call is refused although it is within the rate: somebody else uses the same key. */
let calls = 0
const api = createServer((_, response) => {
  if (++calls === 1) response.writeHead(429, { 'retry-after': '1' }).end()
  else response.writeHead(200).end(JSON.stringify({ call: calls }))
}).listen(0, '127.0.0.1')
await new Promise((done) => api.once('listening', done))
const address = `http://127.0.0.1:${(api.address() as AddressInfo).port}`

const lookUp = defineTask<{ name: string }, { call: number }>('look_up', { queue: 'api', timeout: '10s' })

const holdfast = await connect(process.argv[2] ?? 'memory:')
await holdfast.queue('api').limit({ rate: '10/1s' })

const worker = holdfast.worker({ queues: ['api'], concurrency: 5 }).handle(lookUp, async ({ name }, ctx) => {
  const response = await fetch(`${address}/${name}`, { signal: ctx.signal })
  // The task sleeps for as long as the API says, and the whole queue with it.
  if (response.status === 429) throw RescheduleError.after(response, '60s', { pause: 'queue' })
  // Anything else that is no success is a failure: retried with growing waits.
  if (!response.ok) throw new Error(`status ${response.status}`)
  return (await response.json()) as { call: number }
})
worker.start()

const from = performance.now()
const submitted = await holdfast.submitMany(
  ['ann', 'bob', 'cid', 'dan', 'eve', 'fay'].map((name) => ({ type: lookUp, input: { name } })),
)
for (const result of submitted) if (result.ok) await holdfast.wait(result.task)
const elapsed = performance.now() - from
const { count } = await holdfast.count({ queue: 'api', status: 'completed' })
console.log(`${count} answers in ${calls} calls, one refused`)
console.log(elapsed > 1_400 ? 'within the rate' : `too fast: ${elapsed} ms`)

api.close()
await holdfast.close()
