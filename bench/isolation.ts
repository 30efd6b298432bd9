/** The cost of a warm isolated run compared with the same handler in the worker itself: sequential, on a memory store. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Client, connect, type Handler, type IsolatedHandler, silentLogger } from 'holdfast'
import { medianOf } from './median.ts'
import { runCommand, wholeNumber } from './options.ts'

const HELP = `Measures what a warm isolated run costs, uses the existing dist.

  node bench/isolation.ts [options]

  --runs N     runs in a round (default 1000)
  --rounds N   rounds of each way, taking turns; the median counts (default 7)
  --help       this
`

const WAYS = ['worker', 'thread', 'process'] as const
/** Milliseconds. */
const TARGETS = { thread: 1, process: 3 } as const

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: '1000' },
      rounds: { type: 'string', default: '7' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return void process.stdout.write(HELP)
  const [runs, rounds] = [wholeNumber(values.runs, '--runs'), wholeNumber(values.rounds, '--rounds')]
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-isolation-'))
  const client = await connect('memory:', { logger: silentLogger })
  try {
    const module = join(folder, 'handler.mjs')
    writeFileSync(module, 'export default (input) => input\n')
    for (const way of WAYS) startWorker(client, way, way === 'worker' ? (input) => input : { module, isolate: way })
    const took = { worker: [] as number[], thread: [] as number[], process: [] as number[] }
    for (const way of WAYS) await round(client, way, 10)
    for (let n = 0; n < rounds; n++) for (const way of WAYS) took[way].push((await round(client, way, runs)) / runs)
    const inWorker = medianOf(took.worker)
    process.stdout.write(`in the worker itself: ${inWorker.toFixed(3)} ms a run\n`)
    for (const way of ['thread', 'process'] as const) {
      const cost = medianOf(took[way]) - inWorker
      const isMet = cost < TARGETS[way]
      process.stdout.write(
        `in a warm ${way}: ${cost.toFixed(3)} ms more (target ${TARGETS[way]} ms${isMet ? '' : ', MISSED'})\n`,
      )
      if (!isMet) process.exitCode = 1
    }
  } finally {
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const startWorker = (client: Client, way: string, handler: Handler | IsolatedHandler): void => {
  client
    .worker({ concurrency: 1, queues: [way] })
    .handle('echo', handler)
    .start()
}

/** One slot: a run begins when the previous one has ended. */
const round = async (client: Client, queue: string, runs: number): Promise<number> => {
  const begun = performance.now()
  const tasks = await client.submitMany(
    Array.from({ length: runs }, (_, n) => ({ type: 'echo', input: { n } })),
    { queue },
  )
  const last = tasks.at(-1)!
  if (last.ok) await client.wait(last.task)
  return performance.now() - begun
}

await runCommand(main)
