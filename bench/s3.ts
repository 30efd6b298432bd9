/** What tasks cost on S3: requests of each kind, dollars at AWS's prices, and tasks a second. On a server of its own, or on yours. */
import { parseArgs } from 'node:util'
import { connect, silentLogger } from '../src/index.ts'
import { makeBucket, s3Target, startS3 } from '../test/servers/s3.ts'

const HELP = `Submits tasks to a queue in a bucket, runs them, and counts the requests.

  node bench/s3.ts [options]       starts a Ceph gateway, removed after

  --tasks N          default 1000
  --concurrency N    of the one worker (default 100)
  --rounds N         the best of them is told, too (default 3)
  --url s3://…       your own bucket instead, with credentials as the AWS SDK finds them
  --json             as JSON
`

/** US dollars for a million; a delete costs nothing. */
const PRICES = { PUT: 5, LIST: 5, GET: 0.4, DELETE: 0 } as const
type Kind = keyof typeof PRICES

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

interface Round {
  readonly tasksPerSecond: number
  readonly submittedPerSecond: number
  readonly requestsPerTask: Readonly<Record<Kind, number>>
  readonly dollarsPerMillionTasks: number
}

const measure = async (url: string, credentials: object, tasks: number, concurrency: number): Promise<Round> => {
  const counts: Record<Kind, number> = { PUT: 0, GET: 0, LIST: 0, DELETE: 0 }
  const count = (kind: Kind): void => void counts[kind]++
  const client = await connect(url, { create: true, logger: silentLogger, s3: { ...credentials, onRequest: count } })
  try {
    for (const kind of Object.keys(counts) as Kind[]) counts[kind] = 0
    let left = tasks
    const all = Promise.withResolvers<void>()
    const worker = client.worker({ concurrency }).handle('work', async () => {
      if (--left === 0) all.resolve()
    })
    const begun = performance.now()
    worker.start()
    const items = Array.from({ length: tasks }, (_, n) => ({ type: 'work', input: { n } }))
    const results = await client.submitMany(items)
    const submitted = performance.now()
    if (results.some(({ ok }) => !ok)) throw new Error('a task was refused')
    await all.promise
    await worker.stop()
    const seconds = (performance.now() - begun) / 1_000
    const each = Object.fromEntries(Object.entries(counts).map(([kind, n]) => [kind, n / tasks])) as Record<
      Kind,
      number
    >
    const dollars = Object.entries(PRICES).reduce((sum, [kind, price]) => sum + each[kind as Kind] * price, 0)
    return {
      tasksPerSecond: Math.round(tasks / seconds),
      submittedPerSecond: Math.round((tasks * 1_000) / (submitted - begun)),
      requestsPerTask: each,
      dollarsPerMillionTasks: Math.round(dollars * 100) / 100,
    }
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
    const rounds: Round[] = []
    for (let n = 1; n <= Number(values.rounds); n++) {
      const url =
        values.url ?? `s3://${target!.bucket}/bench-${n}?endpoint=${target!.endpoint}&region=${target!.region}`
      rounds.push(await measure(url, credentials, Number(values.tasks), Number(values.concurrency)))
    }
    if (values.json) return console.log(JSON.stringify(rounds))
    for (const { tasksPerSecond, submittedPerSecond, requestsPerTask, dollarsPerMillionTasks } of rounds) {
      const requests = Object.entries(requestsPerTask).map(([kind, n]) => `${n.toFixed(2)} ${kind}`)
      console.log(
        `${tasksPerSecond} tasks/s from submit to completed (${submittedPerSecond}/s submitted); a task: ${requests.join(', ')}; $${dollarsPerMillionTasks} a million`,
      )
    }
    console.log(`best: ${Math.max(...rounds.map(({ tasksPerSecond }) => tasksPerSecond))} tasks/s`)
  } finally {
    await server?.remove()
  }
}

await main()
