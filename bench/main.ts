/** The deployment benchmark: several task types, queues and processes. Prints each system's figures and the targets. */
import { parseArgs } from 'node:util'
import { CELLS, PROCESSES, QUEUES, TYPES } from './deployment/cells.ts'
import { measure } from './deployment/measure.ts'
import { FULL, type Plan, QUICK } from './deployment/plan.ts'
import { asMarkdown, asText } from './deployment/report.ts'
import { cellsOf, systemsOf } from './deployment/selection.ts'
import { SYSTEMS } from './deployment/systems.ts'
import { writeMeasured } from './docs.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'
import { installPeers } from './peers.ts'

const HELP = `Measures Holdfast and other queues as they are deployed: producer, workers and server in separate processes, several
task types and queues. One type in one process is bench/single.ts.

  npm run bench                      everything (build first; about two hours)
  npm run bench -- --quick           every cell, shortened: under five minutes
  node bench/main.ts [options]       uses the existing dist

  --quick          one run, fewer tasks, shorter loads, fewer peers; the output says what was skipped
  --store NAME     sqlite, postgres (starts a temporary server; also BullMQ), or all (the default)
  --only NAME      only cells whose name begins with this; may be repeated
                   (${namesOf()})
  --systems NAME   only this system, in every cell that it can do; may be repeated
                   (${SYSTEMS.map(({ name }) => name).join('; ')})
  --types N        only drain cells with this many types (${TYPES.join(', ')}); may be repeated
  --processes N    only drain cells with this many worker processes (${PROCESSES.join(', ')}); may be repeated
  --queues N       only drain cells with this many queues (${QUEUES.join(', ')}); may be repeated
  --tasks N        tasks in a drain, mix or batch insert cell (default ${FULL.tasks}, with --quick ${QUICK.tasks})
  --runs N         runs of each, of which the median counts (default ${FULL.runs}, with --quick ${QUICK.runs})
  --seconds N      length of each steady load (default 20 at 5 a second and 10 at the others, with --quick 5 and 3)
  --no-peers       without the systems of bench/peers, which are installed on the first run otherwise
  --json           everything measured, as JSON
  --update-docs    also write the tables into docs/benchmarks.md
  --help           print this help

Example:
  node bench/main.ts --store postgres --only drain/10-types --only mix --tasks 20000 --runs 3
`

function namesOf(): string {
  return `drain/${TYPES[2]}-types/${PROCESSES[0]}-process/${QUEUES[1]}-queues and so on, ${CELLS.filter(
    ({ kind }) => kind !== 'drain',
  )
    .map(({ name }) => name)
    .join(', ')}`
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      quick: { type: 'boolean', default: false },
      store: { type: 'string', default: 'all' },
      only: { type: 'string', multiple: true, default: [] },
      systems: { type: 'string', multiple: true, default: [] },
      types: { type: 'string', multiple: true, default: [] },
      processes: { type: 'string', multiple: true, default: [] },
      queues: { type: 'string', multiple: true, default: [] },
      tasks: { type: 'string' },
      runs: { type: 'string' },
      seconds: { type: 'string' },
      peers: { type: 'boolean', default: true },
      json: { type: 'boolean', default: false },
      'update-docs': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const cells = cellsOf(values)
  const systems = systemsOf(fieldsOf(values.store), values.systems, values.peers)
  const plan = planOf(values)
  if (systems.some(({ isPeer }) => isPeer)) installPeers()
  const report = await measure({
    plan,
    cells,
    systems,
    command: ['node bench/main.ts', ...process.argv.slice(2)].join(' '),
    said: (line) => values.json || console.error(line),
  })
  console.log(values.json ? JSON.stringify(report, null, 2) : `\n${asText(report)}`)
  if (values['update-docs']) writeMeasured('in deployment', asMarkdown(report))
  if (report.failures.length > 0) process.exitCode = 1
}

interface PlanValues {
  readonly quick: boolean
  readonly systems: readonly string[]
  readonly tasks?: string | undefined
  readonly runs?: string | undefined
  readonly seconds?: string | undefined
}

const planOf = ({ quick, systems, tasks, runs, seconds }: PlanValues): Plan => {
  const plan = quick ? QUICK : FULL
  const given = seconds === undefined ? null : wholeNumber(seconds, '--seconds')
  return {
    ...plan,
    tasks: tasks === undefined ? plan.tasks : wholeNumber(tasks, '--tasks'),
    runs: runs === undefined ? plan.runs : wholeNumber(runs, '--runs'),
    steadySeconds: (rate) => given ?? plan.steadySeconds(rate),
    // A system that is asked for by name takes part in all cells.
    ...(systems.length > 0 && { takesPart: FULL.takesPart, peersLeftOut: [] }),
  }
}

await runCommand(main)
