/** What is measured on the simulated S3: requests and waits of tasks that come one by one or together, and of an idle worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, connect, silentLogger } from '../../../src/index.ts'
import type { CountRow } from '../../servers/simulated-s3/options.ts'
import { type Counts, countsOf, type SimulatedS3 } from '../../servers/simulated-s3/start.ts'
import { WorkerProcesses } from './processes.ts'

export interface FlowSettings {
  readonly workers: number
  readonly types: number
  readonly tasks: number
  /** Tasks a second, submitted one by one; null: all together. */
  readonly rate: number | null
  readonly concurrency: number
  readonly queues?: number
}

export interface Flow {
  /** Of all processes, from the first submit to the last end. */
  readonly counts: Counts
  readonly rows: readonly CountRow[]
  readonly waits: readonly number[]
  readonly runs: number
}

const queuesOf = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => (n === 0 ? 'default' : `queue-${n}`))

const typesOf = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `type-${n}`)

export const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN

/** Submits while the workers run. What workers do at their start is not counted. */
export const flow = async (s3: SimulatedS3, settings: FlowSettings): Promise<Flow> => {
  const { url, bucket, credentials } = s3.fresh('producer')
  const types = typesOf(settings.types)
  const client = await connect(url, { create: true, logger: silentLogger, s3: { credentials } })
  const { concurrency, workers: count, queues = 1, tasks } = settings
  const at = { url, credentials, queues: queuesOf(queues), types, concurrency, duration: 0 }
  const workers = await WorkerProcesses.start(count, at)
  try {
    // Once around, so that what is done once in a process is done.
    await client.submitMany(
      types.flatMap((type) => Array.from({ length: 4 }, () => ({ type, input: { at: Date.now() } }))),
    )
    const first = 4 * types.length
    await workers.untilEnded(first, 60_000)
    const before = (await workers.reports()).map(({ waits }) => waits.length)
    await s3.reset()
    await submitAll(client, types, settings)
    const reports = await workers.untilEnded(first + tasks, 120_000)
    const rows = (await s3.reset()).filter((row) => row.bucket === bucket)
    const waits = reports.flatMap((report, n) => report.waits.slice(before[n]))
    return { rows, counts: countsOf(rows), waits, runs: waits.length }
  } finally {
    await workers.stop()
    await client.close()
  }
}

const submitAll = async (client: Client, types: readonly string[], { tasks, rate }: FlowSettings): Promise<void> => {
  const item = (n: number) => ({ type: types[n % types.length]!, input: { at: Date.now() } })
  if (rate === null) {
    await client.submitMany(Array.from({ length: tasks }, (_, n) => item(n)))
    return
  }
  const begun = performance.now()
  const submits: Promise<unknown>[] = []
  for (let n = 0; n < tasks; n++) {
    await sleep(Math.max(0, begun + (n / rate) * 1_000 - performance.now()))
    const { type, input } = item(n)
    submits.push(client.submit(type, input))
  }
  await Promise.all(submits)
}

/** Requests of one worker that has nothing to do, after it has settled down. */
export const idle = async (s3: SimulatedS3, queues: number, settle: number, seconds: number): Promise<Flow> => {
  const { url, bucket, credentials } = s3.fresh()
  const client = await connect(url, { create: true, logger: silentLogger, s3: { credentials } })
  await client.close()
  const at = { url, credentials, queues: queuesOf(queues), types: ['a'], concurrency: 10, duration: 0 }
  const workers = await WorkerProcesses.start(1, at)
  try {
    await sleep(settle)
    await s3.reset()
    await sleep(seconds * 1_000)
    const rows = (await s3.reset()).filter((row) => row.bucket === bucket)
    return { rows, counts: countsOf(rows), waits: [], runs: 0 }
  } finally {
    await workers.stop()
  }
}
