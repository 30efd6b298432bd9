/** One task type, submitted and run by one process: several systems in one run. Prints the figures and the ratios. */
import { parseArgs } from 'node:util'
import { writeMeasured } from './docs.ts'
import { measure, type Report } from './measure.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'
import { installPeers } from './peers.ts'
import { asMarkdown, asText } from './report.ts'
import { ENTRANTS, type Field } from './systems.ts'
import { WORKLOADS, type Workload } from './workloads.ts'

const HELP = `Measures Holdfast, other queues and a bare loop over SQLite with one task type in one process, and prints the ratios.
The benchmark with several types, processes and queues is bench/main.ts.

  npm run bench:single               everything (build first, some minutes)
  node bench/single.ts [options]     uses the existing dist

  --store NAME     sqlite, postgres (starts a temporary server), or all (the default)
  --tasks N        tasks per workload (default 50000)
  --runs N         runs of each, of which the median counts (default 3 on SQLite, 5 on PostgreSQL)
  --only NAME      only workloads whose name begins with this; may be repeated
                   (${WORKLOADS.map(({ name }) => name).join(', ')})
  --no-peers       without the systems of bench/peers, which are installed on the first run otherwise
  --json           everything measured, as JSON: a list with a report for each store
  --update-docs    also write the tables into docs/benchmarks.md
  --help           print this help

Example:
  node bench/single.ts --store sqlite --only drain --tasks 20000 --runs 5
`

const RUNS: Readonly<Record<Field, number>> = { sqlite: 3, postgres: 5 }

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      store: { type: 'string', default: 'all' },
      tasks: { type: 'string', default: '50000' },
      runs: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      peers: { type: 'boolean', default: true },
      json: { type: 'boolean', default: false },
      'update-docs': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const fields = fieldsOf(values.store)
  const tasks = wholeNumber(values.tasks, '--tasks')
  const runs = values.runs === undefined ? null : wholeNumber(values.runs, '--runs')
  const workloads = workloadsOf(values.only)
  if (values.peers) installPeers()
  const command = ['node bench/single.ts', ...process.argv.slice(2)].join(' ')
  const reports: Report[] = []
  for (const field of fields) {
    const report = await measure({
      field,
      entrants: ENTRANTS.filter((entrant) => entrant.field === field && (values.peers || !entrant.isPeer)),
      workloads: workloads.filter((workload) => workload.fields.includes(field)),
      tasks,
      runs: runs ?? RUNS[field],
      command,
      said: (line) => values.json || console.error(line),
    })
    reports.push(report)
    if (!values.json) console.log(`\n${asText(report)}`)
    if (values['update-docs']) writeMeasured(`on ${field}`, asMarkdown(report))
  }
  if (values.json) console.log(JSON.stringify(reports, null, 2))
}

const workloadsOf = (only: readonly string[]): readonly Workload[] => {
  const workloads = WORKLOADS.filter(
    ({ name }) => only.length === 0 || only.some((beginning) => name.startsWith(beginning)),
  )
  if (workloads.length === 0)
    throw new Error(
      `no workload's name begins with ${only.join(' or ')}: there are ${WORKLOADS.map(({ name }) => name).join(', ')}`,
    )
  return workloads
}

await runCommand(main)
