/** What tasks cost on S3: requests of each kind, dollars at AWS's prices, and tasks a second. On a temporary server, or on yours. */
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { costText, Meter } from '../src/cli/bench/cost.ts'
import { type Measured, measure } from '../src/cli/bench/measure.ts'
import { connect, silentLogger } from '../src/index.ts'
import { makeBucket, s3Target, startS3 } from '../test/servers/s3.ts'

const HELP = `Submits tasks to a queue in a bucket, runs them, and counts the requests.

  node bench/s3.ts [options]       starts a Ceph gateway, removed after

  --tasks N          default 1000
  --concurrency N    of the one worker (default 100)
  --rounds N         the best is also printed (default 3)
  --url s3://…       your own bucket instead, with credentials as the AWS SDK finds them
  --json             as JSON
`

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '1000' },
    concurrency: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '3' },
    url: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const round = async (url: string, credentials: object): Promise<Measured> => {
  const meter = new Meter()
  const client = await connect(url, {
    create: true,
    logger: silentLogger,
    s3: { ...credentials, onRequest: meter.count },
  })
  try {
    const [tasks, concurrency] = [Number(values.tasks), Number(values.concurrency)]
    const { signal } = new AbortController()
    return await measure(client, { queue: `bench-${randomUUID()}`, tasks, concurrency, meter, signal })
  } finally {
    await client.close()
  }
}

const main = async (): Promise<void> => {
  if (values.help) return console.log(HELP)
  const server = values.url === undefined ? await startS3() : null
  try {
    const target = server === null ? null : s3Target(server.url)
    if (target !== null) await makeBucket(target)
    const credentials = target === null ? {} : { credentials: target }
    const rounds: Measured[] = []
    for (let n = 1; n <= Number(values.rounds); n++) {
      const url =
        values.url ?? `s3://${target!.bucket}/bench-${n}?endpoint=${target!.endpoint}&region=${target!.region}`
      rounds.push(await round(url, credentials))
    }
    if (values.json) return console.log(JSON.stringify(rounds))
    for (const { completedPerSecond, submittedPerSecond, submitToStart, cost } of rounds) {
      console.log(
        `${completedPerSecond} tasks/s from submit to completed (${submittedPerSecond}/s submitted); start after ${submitToStart.p50} ms, p99 ${submitToStart.p99} ms`,
      )
      console.log(`  a task of a batch: ${costText(cost!.batch)}; by itself: ${costText(cost!.alone)}`)
    }
    console.log(`best: ${Math.max(...rounds.map(({ completedPerSecond }) => completedPerSecond))} tasks/s`)
  } finally {
    await server?.remove()
  }
}

await main()
