/** A worker with ten slots and some handlers that hang: all other tasks complete, and the hung ones end dead. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type HungPlan, type HungResult, runHung } from '../test/crash/hung-campaign.ts'
import { startPostgres } from '../test/servers/postgres.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'

const HELP = `Runs \`holdfast worker --concurrency 10\` on good tasks with hung ones among them (timeout and stuck-after 100 ms), and accounts for each.

  node bench/hung.ts [options]       uses the existing dist

  --store NAME     sqlite, postgres (starts a temporary server), or all (the default)
  --isolate HOW    none (a supervisor starts the worker again), thread, process, or all (the default)
  --good N         good tasks (default 100000)
  --hung N         hung tasks (default 1000)
  --retries N      retries of each hung task (default 3)
  --help           print this help

Example:
  node bench/hung.ts --store sqlite --isolate none --good 10000 --hung 100
`

const WAYS = ['none', 'thread', 'process'] as const

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: 'all' },
      isolate: { type: 'string', default: 'all' },
      good: { type: 'string', default: '100000' },
      hung: { type: 'string', default: '1000' },
      retries: { type: 'string', default: '3' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return void process.stdout.write(HELP)
  const ways = WAYS.filter((way) => values.isolate === 'all' || values.isolate === way)
  const [good, hung] = [wholeNumber(values.good, '--good'), wholeNumber(values.hung, '--hung')]
  const maxRetries = wholeNumber(values.retries, '--retries')
  for (const store of fieldsOf(values.store))
    for (const isolate of ways)
      await withStore(store, async (url) => {
        const plan: HungPlan = { url, good, hung, maxRetries, isolate }
        tell(store, plan, await runHung(plan))
      })
}

const withStore = async (store: string, use: (url: string) => Promise<void>): Promise<void> => {
  if (store === 'postgres') {
    const server = await startPostgres()
    return use(server.url).finally(() => server.remove())
  }
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-hung-'))
  return use(`sqlite:${join(folder, 'hung.db')}`).finally(() => rmSync(folder, { recursive: true, force: true }))
}

const tell = (store: string, { good, hung, isolate, maxRetries }: HungPlan, result: HungResult): void => {
  const isRight = result.completed === good && result.dead === hung && result.left === 0 && result.oddDead === 0
  const lines = [
    `${store}, isolate ${isolate}: ${isRight ? 'right' : 'WRONG'}, in ${result.seconds.toFixed(0)} s`,
    `  good: ${result.completed} of ${good} completed, ${result.extraRunsOfGood} runs repeated`,
    `  hung: ${result.dead} of ${hung} dead after ${result.runsOfHung} runs (${maxRetries + 1} each); ${result.oddDead} with another number`,
    `  worker: started ${result.starts} times, ended with 7 ${result.stuckEnds} times, otherwise ${JSON.stringify(result.otherEnds)}`,
    `  resident memory at the most: worker ${result.workerMb} MB, with its children ${result.totalMb} MB`,
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
  if (!isRight) process.exitCode = 1
}

await runCommand(main)
