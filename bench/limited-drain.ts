/** Measures what the limits of a queue cost a worker: drains under each limit, taking turns with a drain without limits. */
import { parseArgs } from 'node:util'
import { type LimitOptions, limitsText } from '../src/index.ts'
import { type FreshClient, freshClient } from './fresh-client.ts'
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

interface Drained {
  /** Tasks a second. */
  readonly rate: number
  /** Tasks for a second of processor time of this process and of the server. On a busy machine it says more than the clock. */
  readonly rateOfProcessor: number
}

const drain = async (
  { client, processor }: FreshClient,
  queue: string,
  { limits, groups }: Scene,
  tasks: number,
): Promise<Drained> => {
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
  const used = await processor()
  const begun = performance.now()
  await client
    .worker({ concurrency: 100, queues: [queue] })
    .handle('work', async () => null)
    .drain()
  const took = performance.now() - begun
  const usedAfter = await processor()
  // Without a permit a drain ends: what was left is not counted.
  const { count } = await client.count({ queue, status: 'completed' })
  return { rate: (count / took) * 1_000, rateOfProcessor: (count / (usedAfter - used)) * 1_000 }
}

const measure = async (field: Field, rounds: number, tasks: number): Promise<void> => {
  const ground = await freshClient(field)
  const drains = SCENES.map((): Drained[] => [])
  // The first round warms up.
  for (let round = 0; round <= rounds; round++)
    for (const [i, scene] of SCENES.entries()) {
      const drained = await drain(ground, `${round}.${i}`, scene, tasks)
      if (round > 0) drains[i]!.push(drained)
    }
  for (const [i, { limits, groups }] of SCENES.entries()) {
    const name = limits === null ? 'no limits' : `${limitsText(limits)}, ${groups} groups`
    const ratio = (of: (drained: Drained) => number): string =>
      medianRatio(drains[i]!.map(of), drains[0]!.map(of)).toFixed(2)
    const rate = Math.round(medianOf(drains[i]!.map((drained) => drained.rate)))
    const byProcessor = ratio((drained) => drained.rateOfProcessor)
    console.log(
      `${field}  ${name}: ${rate} tasks/s, ${ratio((drained) => drained.rate)} of no limits, ${byProcessor} by processor time`,
    )
  }
  await ground.close()
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
