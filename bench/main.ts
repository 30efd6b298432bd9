/** One workload, several systems, side by side in one run. Prints each one's figures and the ratios. */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { measure } from './measure.ts'
import { installPeers } from './peers.ts'
import { asMarkdown, asText } from './report.ts'
import { ENTRANTS } from './systems.ts'
import { WORKLOADS } from './workloads.ts'

const HELP = `Measures Holdfast beside other queues and a bare loop over SQLite, in one run, and prints the ratios.

  npm run bench                      everything (build first, some minutes)
  node bench/main.ts [options]       with the dist that is there

  --tasks N        tasks per workload (default 50000)
  --runs N         runs of each, of which the median counts (default 3)
  --only NAME      only workloads whose name begins so; may be repeated
                   (${WORKLOADS.map(({ name }) => name).join(', ')})
  --no-peers       without the systems of bench/peers, which are installed on the first run otherwise
  --json           everything measured, as JSON
  --update-docs    also write the tables into docs/benchmarks.md
  --help           this

Example:
  node bench/main.ts --only drain --tasks 20000 --runs 5
`

const DOCS = new URL('../docs/benchmarks.md', import.meta.url)
const MEASURED = /(<!-- measured: begin[^\n]*-->\n).*(<!-- measured: end -->)/s

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      tasks: { type: 'string', default: '50000' },
      runs: { type: 'string', default: '3' },
      only: { type: 'string', multiple: true, default: [] },
      peers: { type: 'boolean', default: true },
      json: { type: 'boolean', default: false },
      'update-docs': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const tasks = wholeNumber(values.tasks, '--tasks')
  const runs = wholeNumber(values.runs, '--runs')
  const workloads = WORKLOADS.filter(
    ({ name }) => values.only.length === 0 || values.only.some((beginning) => name.startsWith(beginning)),
  )
  if (workloads.length === 0)
    throw new Error(
      `no workload's name begins with ${values.only.join(' or ')}: there are ${WORKLOADS.map(({ name }) => name).join(', ')}`,
    )
  if (values.peers) installPeers()
  const entrants = ENTRANTS.filter(({ isPeer }) => values.peers || !isPeer)
  const command = ['node bench/main.ts', ...process.argv.slice(2)].join(' ')
  const report = await measure({
    entrants,
    workloads,
    tasks,
    runs,
    command,
    said: (line) => values.json || console.error(line),
  })
  if (values['update-docs']) writeFileSync(DOCS, withMeasured(readFileSync(DOCS, 'utf8'), asMarkdown(report)))
  console.log(values.json ? JSON.stringify(report, null, 2) : `\n${asText(report)}`)
}

const withMeasured = (page: string, tables: string): string => {
  if (!MEASURED.test(page)) throw new Error('docs/benchmarks.md has lost the two comments between which the tables go')
  return page.replace(MEASURED, (_, begin: string, end: string) => `${begin}\n${tables}\n${end}`)
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
