/** How fast worker processes drain a queue on a simulated S3, and what that costs. */
import { parseArgs } from 'node:util'
import { connect, silentLogger } from '../src/index.ts'
import { WorkerProcesses } from '../test/s3/simulated/processes.ts'
import { countsOf, dollarsOf, startSimulatedS3 } from '../test/servers/simulated-s3/start.ts'

const HELP = `Submits tasks to a simulated S3, then starts worker processes and waits until all have ended.

  node bench/s3-workers.ts [options]

  --tasks N          default 5000
  --workers LIST     processes, one round for each number (default 1,2,4,8)
  --concurrency N    of each (default 50)
  --types N          task types, in turn (default 1)
  --latency MS       of a request (default 30)
  --max-retries N    of each task (default 0: one that is charged a retry has failed)
  --detail           counts by client, kind, status and folder
`

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '5000' },
    workers: { type: 'string', default: '1,2,4,8' },
    concurrency: { type: 'string', default: '50' },
    types: { type: 'string', default: '1' },
    latency: { type: 'string', default: '30' },
    'max-retries': { type: 'string', default: '0' },
    detail: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const round = async (workers: number): Promise<void> => {
  const tasks = Number(values.tasks)
  const s3 = await startSimulatedS3({ latency: Number(values.latency) })
  try {
    const { url, bucket, credentials } = s3.fresh('producer')
    const types = Array.from({ length: Number(values.types) }, (_, n) => `type-${n}`)
    const client = await connect(url, { create: true, logger: silentLogger, s3: { credentials } })
    const settings = { url, credentials, queues: ['default'], types, concurrency: Number(values.concurrency) }
    for (let at = 0; at < tasks; at += 1_000)
      await client.submitMany(
        Array.from({ length: Math.min(1_000, tasks - at) }, (_, n) => ({
          type: types[n % types.length]!,
          input: { at: Date.now() },
          maxRetries: Number(values['max-retries']),
        })),
      )
    await s3.reset()
    const running = await WorkerProcesses.start(workers, { ...settings, duration: 0 })
    const begun = performance.now()
    const reports = await running.untilEnded(tasks, 40_000)
    const took = performance.now() - begun
    const rows = await s3.reset()
    const counts = countsOf(rows)
    const cpu = reports.reduce((sum, report) => sum + report.cpu, 0)
    const kept = Object.values(await s3.objects(bucket, 'tasks/')).map((text) => JSON.parse(text).task)
    const statuses = Object.groupBy(kept, ({ status }) => status)
    const started = reports.reduce((sum, report) => sum + report.started, 0)
    console.log(
      `${workers} workers: ${Math.round((tasks / took) * 1_000)} tasks/s; runs ${started} (${reports.map((one) => one.started).join(', ')}); ${Object.entries(
        statuses,
      )
        .map(([status, all]) => `${status} ${all!.length}`)
        .join(', ')}; CPU ${(cpu / tasks).toFixed(2)} ms a task; a task: ${Object.entries(counts)
        .map(([kind, n]) => `${(n / tasks).toFixed(2)} ${kind}`)
        .join(', ')}, $${((dollarsOf(counts) / tasks) * 1e6).toFixed(2)} a million`,
    )
    if (values.detail)
      for (const { kind, status, folder, by, count } of rows.toSorted((a, b) => b.count - a.count).slice(0, 25))
        console.log(`   ${count} ${kind} ${status} ${folder} ${by}`)
    await client.close()
    await running.stop()
  } finally {
    await s3.remove()
  }
}

if (values.help) console.log(HELP)
else for (const workers of values.workers.split(',')) await round(Number(workers))
