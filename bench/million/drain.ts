/** Submits no-op tasks, then times a worker that runs them all. Prints seconds, and those of its processor time, as JSON. Starts on a line of input. */
import { once } from 'node:events'
import { connect, silentLogger } from '../../src/index.ts'

const TYPE = 'noop'
const QUEUE = 'drain'
const CONCURRENCY = 100

const [address, count] = process.argv.slice(2) as [string, string]
const client = await connect(address, { logger: silentLogger })
for (let left = Number(count); left > 0; left -= 1_000)
  await client.submitMany(
    Array.from({ length: Math.min(1_000, left) }, (_, n) => ({ type: TYPE, input: { n }, queue: QUEUE })),
  )
let left = Number(count)
let finished = (): void => {}
const all = new Promise<void>((done) => (finished = done))
const onTaskEnd = (): void => {
  if (--left === 0) finished()
}
const worker = client
  .worker({ concurrency: CONCURRENCY, queues: [QUEUE], hooks: { onTaskEnd } })
  .handle(TYPE, async () => {})
console.log('ready')
await once(process.stdin, 'data')
const cpu = process.cpuUsage()
const began = performance.now()
worker.start()
await all
const seconds = (performance.now() - began) / 1_000
await worker.stop()
await client.close()
const { user, system } = process.cpuUsage(cpu)
console.log(JSON.stringify({ seconds, cpuSeconds: (user + system) / 1_000_000 }))
process.exit()
