/** A worker in a process of its own on a simulated S3: counts its runs, and how long each task waited for its start. */
import { connect, silentLogger } from '../../../src/index.ts'
import type { WorkerReport, WorkerSettings } from './processes.ts'

const { url, credentials, queues, types, concurrency, duration } = JSON.parse(process.argv[2]!) as WorkerSettings
const client = await connect(url, { create: true, logger: silentLogger, s3: { credentials } })

const report: WorkerReport = { started: 0, ended: 0, waits: [], cpu: 0 }
const worker = client.worker({
  queues,
  concurrency,
  hooks: {
    onTaskEnd: () => {
      report.ended++
    },
  },
})
for (const type of types)
  worker.handle(type, async (input) => {
    report.started++
    report.waits.push(Date.now() - (input as { at: number }).at)
    if (duration > 0) await new Promise((done) => setTimeout(done, duration))
    return null
  })

process.on('message', (message) => {
  const { user, system } = process.cpuUsage()
  if (message === 'report') process.send!({ ...report, cpu: (user + system) / 1_000 })
  else
    void worker
      .stop()
      .then(() => client.close())
      .then(() => process.disconnect())
})
worker.start()
process.send!('ready')
