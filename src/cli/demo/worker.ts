/** One worker process of the demo: `node worker.js QUEUE ID`, with HOLDFAST_URL. Ends on SIGTERM, or when the demo ends. */
import { connect, type Handler } from '../../index.ts'
import { KIND_NAMES, KINDS, SLOTS } from './kinds.ts'

const [queue, id] = process.argv.slice(2) as [string, string]
const client = await connect(process.env['HOLDFAST_URL']!, { create: false, name: id })
const worker = client.worker({
  id,
  queues: [queue],
  concurrency: SLOTS,
  // A new connection to S3 knows the server's time only to half a second.
  leaseTtl: process.env['HOLDFAST_URL']!.startsWith('s3:') ? '3s' : '1s',
  pollInterval: '500ms',
  stopTimeout: '2s',
})
for (const name of KIND_NAMES) worker.handle(name, KINDS[name].handler as Handler)
// The demo holds the other end: however it dies, this process ends too.
process.stdin.resume().once('end', () => void worker.stop())
await worker.run()
await client.close()
process.exit(0)
