/** The memory store has one process: it submits, works and serves. Its argument is a Use without addresses. */
import type * as Http from '../../src/http/index.ts'
import type * as Metrics from '../../src/metrics/index.ts'
import { loadHoldfast } from '../systems/holdfast.ts'
import * as handlers from './handlers.ts'
import { prepare, QUEUES, startLoad } from './load.ts'
import { reportMinutes } from './minutes.ts'
import { startVisitors } from './visitors.ts'

const { rate } = JSON.parse(process.argv[2]!) as { readonly rate: number }
const dist = (path: string): string => new URL(`../../dist/${path}`, import.meta.url).href

const { connect } = await loadHoldfast()
const http = (await import(dist('http/index.js'))) as typeof Http
const { createMetrics } = (await import(dist('metrics/index.js'))) as typeof Metrics

const client = await connect('memory:')
await prepare(client)
const metrics = createMetrics(client)
const handler = http.createHttpHandler(client, {
  authorize: http.everybody,
  charts: client.charts().start(),
  metrics: () => metrics.text(),
})
const server = await http.listen(handler, { host: '127.0.0.1', port: 0 })
const worker = client.worker({ queues: [...QUEUES] })
for (const [type, handle] of Object.entries(handlers)) worker.handle(type, handle as never)
worker.start()
const load = startLoad(client, rate)
const visitors = await startVisitors(`http://127.0.0.1:${server.port}/`)
reportMinutes(client, load, visitors)

process.once('SIGTERM', () => {
  const stop = async (): Promise<void> => {
    await Promise.all([load.stop(), visitors.stop()])
    await worker.stop()
    await server.close()
    await client.close()
    process.exit()
  }
  void stop()
})
