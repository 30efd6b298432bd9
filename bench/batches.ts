/** Measures what handleMany costs a worker, and what a batched type costs the single tasks beside it. */
import { parseArgs } from 'node:util'
import type { Client, Worker } from '../src/index.ts'
import { freshClient } from './fresh-client.ts'
import { medianOf, medianRatio } from './median.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'
import type { Field } from './systems.ts'

const HELP = `Measures drains of tasks that do nothing by one worker with 100 slots: one by one, in batches, and of both kinds beside each other.

  node bench/batches.ts [options]

  --store NAME     sqlite, postgres (starts a temporary server), or all (the default)
  --rounds N       drains of each kind, taking turns (default 5); medians count
  --tasks N        tasks in each drain (default 20000)
  --help           print this help
`

interface Scene {
  readonly name: string
  readonly types: readonly string[]
  readonly handled: (worker: Worker) => Worker
}

const single =
  (...types: string[]) =>
  (worker: Worker): Worker =>
    types.reduce((one, type) => one.handle(type, async () => null), worker)

const batched =
  (type: string, size: number) =>
  (worker: Worker): Worker =>
    worker.handleMany(type, { size }, async (tasks) => tasks.map(() => null))

/** All are compared with the first. */
const SCENES: readonly Scene[] = [
  { name: 'one by one', types: ['a'], handled: single('a') },
  { name: 'batches of 10', types: ['a'], handled: batched('a', 10) },
  { name: 'batches of 100', types: ['a'], handled: batched('a', 100) },
  { name: 'two types, one by one', types: ['a', 'b'], handled: single('a', 'b') },
  {
    name: 'two types, one in batches of 100',
    types: ['a', 'b'],
    handled: (worker) => batched('b', 100)(single('a')(worker)),
  },
]

const BATCH = 5_000

/** Tasks a second. */
const drain = async (client: Client, queue: string, { types, handled }: Scene, tasks: number): Promise<number> => {
  for (let i = 0; i < tasks; i += BATCH)
    await client.submitMany(
      Array.from({ length: BATCH }, (_, j) => ({ type: types[(i + j) % types.length]!, input: null, queue })),
    )
  const begun = performance.now()
  await handled(client.worker({ concurrency: 100, queues: [queue] })).drain()
  return tasks / ((performance.now() - begun) / 1_000)
}

const measure = async (field: Field, rounds: number, tasks: number): Promise<void> => {
  const { client, close } = await freshClient(field)
  const rates = SCENES.map((): number[] => [])
  // The first round warms up.
  for (let round = 0; round <= rounds; round++)
    for (const [i, scene] of SCENES.entries()) {
      const rate = await drain(client, `${round}.${i}`, scene, tasks)
      if (round > 0) rates[i]!.push(rate)
    }
  for (const [i, { name }] of SCENES.entries()) {
    const ratio = medianRatio(rates[i]!, rates[0]!).toFixed(2)
    console.log(`${field}  ${name}: ${Math.round(medianOf(rates[i]!))} tasks/s, ${ratio} of one by one`)
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
