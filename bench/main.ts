/** One workload, several systems, side by side in one run. Prints each one's figures and the ratios. */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { measure, type Report } from './measure.ts'
import { installPeers } from './peers.ts'
import { asMarkdown, asText } from './report.ts'
import { ENTRANTS, type Field } from './systems.ts'
import { WORKLOADS, type Workload } from './workloads.ts'

const HELP = `Measures Holdfast beside other queues and a bare loop over SQLite, in one run, and prints the ratios.

  npm run bench                      everything (build first, some minutes)
  node bench/main.ts [options]       with the dist that is there

  --store NAME     sqlite, postgres (with a server of its own, removed after), or all (the default)
  --tasks N        tasks per workload (default 50000)
  --runs N         runs of each, of which the median counts (default 3 on SQLite, 5 on PostgreSQL)
  --only NAME      only workloads whose name begins so; may be repeated
                   (${WORKLOADS.map(({ name }) => name).join(', ')})
  --no-peers       without the systems of bench/peers, which are installed on the first run otherwise
  --json           everything measured, as JSON: a list with a report for each store
  --update-docs    also write the tables into docs/benchmarks.md
  --help           this

Example:
  node bench/main.ts --store sqlite --only drain --tasks 20000 --runs 5
`

const DOCS = new URL('../docs/benchmarks.md', import.meta.url)
const FIELDS: readonly Field[] = ['sqlite', 'postgres']
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
  const command = ['node bench/main.ts', ...process.argv.slice(2)].join(' ')
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
    if (values['update-docs']) writeFileSync(DOCS, withMeasured(readFileSync(DOCS, 'utf8'), field, asMarkdown(report)))
  }
  if (values.json) console.log(JSON.stringify(reports, null, 2))
}

const fieldsOf = (store: string): readonly Field[] => {
  const fields = FIELDS.filter((field) => store === 'all' || store === field)
  if (fields.length === 0) throw new Error(`--store must be ${FIELDS.join(', ')} or all, not '${store}'`)
  return fields
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

/** Between the two comments for this store. */
const withMeasured = (page: string, field: Field, tables: string): string => {
  const measured = new RegExp(
    `(<!-- measured on ${field}: begin[^\\n]*-->\\n).*(<!-- measured on ${field}: end -->)`,
    's',
  )
  if (!measured.test(page))
    throw new Error(`docs/benchmarks.md has lost the two comments between which the tables for ${field} go`)
  return page.replace(measured, (_, begin: string, end: string) => `${begin}\n${tables}\n${end}`)
}

const wholeNumber = (text: string, option: string): number => {
  const value = Number(text)
  if (Number.isInteger(value) && value > 0) return value
  throw new Error(`${option} must be a whole number from 1, not '${text}'`)
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
