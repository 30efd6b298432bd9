/** Measures what the limits of a queue cost a worker: drains under each limit, taking turns with a drain without limits. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Client, connect, type LimitOptions, limitsText, silentLogger } from '../src/index.ts'
import { startPostgres } from '../test/servers/postgres.ts'
import { medianOf, medianRatio } from './median.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'
import type { Field } from './systems.ts'

const HELP = `Measures what limits cost a worker with 100 slots: tasks that do nothing, in 1,000 groups (20 for the last rows), by one process.

  node bench/limited-drain.ts [options]

  --store NAME     sqlite, postgres (starts a temporary server), or all (the default)
  --rounds N       drains under each limit, taking turns (default 5); medians count
  --tasks N        tasks in each drain (default 20000)
  --help           print this help

Ratios are rates: limited to unlimited of the same round. Wanted of 2 per group: 0.6.
`

interface Scene {
  readonly limits: LimitOptions | null
  readonly groups: number
}

const SCENES: readonly Scene[] = [
  { limits: null, groups: 1_000 },
  { limits: { concurrency: 1_000 }, groups: 1_000 },
  { limits: { perGroup: 2 }, groups: 1_000 },
  { limits: { fair: true }, groups: 1_000 },
  { limits: { perGroup: 50 }, groups: 20 },
  { limits: { rate: '100000/1s', burst: 1_000 }, groups: 20 },
]

const BATCH = 5_000

/** Tasks a second. */
const drain = async (client: Client, queue: string, { limits, groups }: Scene, tasks: number): Promise<number> => {
  if (limits !== null) await client.queue(queue).limit(limits)
  for (let i = 0; i < tasks; i += BATCH)
    await client.submitMany(
      Array.from({ length: BATCH }, (_, j) => ({
        type: 'work',
        input: null,
        queue,
        group: `group-${(i + j) % groups}`,
      })),
    )
  const begun = performance.now()
  await client
    .worker({ concurrency: 100, queues: [queue] })
    .handle('work', async () => null)
    .drain()
  const took = performance.now() - begun
  // Without a permit a drain ends: what was left is not counted.
  const { count } = await client.count({ queue, status: 'completed' })
  return (count / took) * 1_000
}

const opened = async (field: Field): Promise<{ client: Client; close: () => Promise<void> }> => {
  if (field === 'postgres') {
    const server = await startPostgres()
    const client = await connect(server.url, { create: true, logger: silentLogger })
    return { client, close: () => client.close().then(() => server.remove()) }
  }
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-limited-drain-'))
  const client = await connect(`sqlite:${join(folder, 'drain.db')}`, { logger: silentLogger })
  return { client, close: () => client.close().then(() => rmSync(folder, { recursive: true, force: true })) }
}

const measure = async (field: Field, rounds: number, tasks: number): Promise<void> => {
  const { client, close } = await opened(field)
  const rates = SCENES.map((): number[] => [])
  // The first round warms up.
  for (let round = 0; round <= rounds; round++)
    for (const [i, scene] of SCENES.entries()) {
      const rate = await drain(client, `${round}.${i}`, scene, tasks)
      if (round > 0) rates[i]!.push(rate)
    }
  for (const [i, { limits, groups }] of SCENES.entries()) {
    const name = limits === null ? 'no limits' : `${limitsText(limits)}, ${groups} groups`
    const ratio = medianRatio(rates[i]!, rates[0]!).toFixed(2)
    console.log(`${field}  ${name}: ${Math.round(medianOf(rates[i]!))} tasks/s, ${ratio} of no limits`)
  }
  await close()
}

await runCommand(async () => {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: 'all' },
      rounds: { type: 'string', default: '5' },
      tasks: { type: 'string', default: '20000' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return void console.log(HELP)
  const [rounds, tasks] = [wholeNumber(values.rounds, '--rounds'), wholeNumber(values.tasks, '--tasks')]
  for (const field of fieldsOf(values.store)) await measure(field, rounds, tasks)
})
