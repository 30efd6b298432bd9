/** Two tasks of each customer at once, and customers take turns. Run it: node examples/per-customer.ts */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'holdfast'

await using holdfast = await connect(process.argv[2] ?? 'memory:')

// The limits are kept in the store and bind every worker of the queue, in any process.
await holdfast.queue('sync').limit({ concurrency: 5, perGroup: 2 })

/** Running tasks by customer, and the most that there were. */
const running = new Map<string, number>()
const most = new Map<string, number>()
const starts: string[] = []

const worker = holdfast.worker({ queues: ['sync'], concurrency: 10 }).handle('sync', async (_input, ctx) => {
  const customer = ctx.task.group ?? ''
  const now = (running.get(customer) ?? 0) + 1
  running.set(customer, now)
  most.set(customer, Math.max(most.get(customer) ?? 0, now))
  starts.push(customer)
  await sleep(20)
  running.set(customer, running.get(customer)! - 1)
})

// A noisy customer comes first, the others wait behind it.
const customers = [...Array<string>(20).fill('acme'), 'globex', 'initech', 'globex', 'initech']
const tasks = []
for (const group of customers) tasks.push(await holdfast.submit('sync', {}, { queue: 'sync', group }))

worker.start()
for (const task of tasks) await holdfast.wait(task)
await worker.stop()

for (const [customer, count] of [...most].sort()) console.log(`${customer}: at most ${count} at once`)
const last = Math.max(starts.lastIndexOf('globex'), starts.lastIndexOf('initech'))
const before = starts.slice(0, last).filter((customer) => customer === 'acme').length
console.log(`globex and initech had begun all their tasks after ${before} of 20 of acme`)
