/** One worker process of the demo: `node worker.js ADDRESS QUEUE ID`. Ends on SIGTERM, or when the show is gone. */
import { connect, type Handler } from '../../index.ts'
import { KIND_NAMES, KINDS, SLOTS } from './kinds.ts'

const [address, queue, id] = process.argv.slice(2) as [string, string, string]
const client = await connect(address, { create: false, name: id })
const worker = client.worker({
  id,
  queues: [queue],
  concurrency: SLOTS,
  leaseTtl: '1s',
  pollInterval: '500ms',
  stopTimeout: '2s',
})
for (const name of KIND_NAMES) worker.handle(name, KINDS[name].handler as Handler)
// The show holds the other end: when it dies, however it dies, this ends too.
process.stdin.resume().once('end', () => void worker.stop())
await worker.run()
await client.close()
process.exit(0)
