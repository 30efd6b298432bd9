/** The long tier of the interruptions, by hand: every row of a store, several times, with everybody who takes leases. */
import { parseArgs } from 'node:util'
import { interrupt, isConclusive } from './interruption.ts'
import { GROUNDS, type Ground, type StoreKind } from './interruption-rows.ts'
import { removeFolders } from './processes.ts'

const HELP = `Interrupts workers with tasks under way for longer than their leases last, and counts the leases that others take.

  npm run build && node test/crash/interruption-campaign.ts [options]

  --store NAME     sqlite, postgres, s3, nats, or all (the default); servers are started
  --row TEXT       only the rows whose name has this text
  --runs N         of each row (default 5)
  --tasks N        under way, half of them without retries (default 40)
  --lease MS       default 5000
  --lasts MS       the interruption (default 8000)
  --planted        with the planted bug: takers take at once
  --help           print this help

A run is not counted, and is repeated, when the machine was too busy for it: leases were lost, or not renewed in time, before the interruption began, or this
process did not get the processor for a third of a lease.
`

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'all' },
    row: { type: 'string', default: '' },
    runs: { type: 'string', default: '5' },
    tasks: { type: 'string', default: '40' },
    lease: { type: 'string', default: '5000' },
    lasts: { type: 'string', default: '8000' },
    planted: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

/** A run that this many others of its row have not counted is given up. */
const MOST_UNCOUNTED = 5

const runRow = async (store: StoreKind, { fresh }: Ground, row: Ground['rows'][number]): Promise<void> => {
  const lease = Number(values.lease)
  const sum = { runs: 0, uncounted: 0, tasks: 0, taken: 0, dead: 0, completed: 0, aborted: 0 }
  while (sum.runs < Number(values.runs) && sum.uncounted < MOST_UNCOUNTED) {
    const result = await interrupt({
      url: await fresh(),
      row,
      tasks: Number(values.tasks),
      lease,
      lasts: Number(values.lasts),
      standing: [['claimNext'], ['monitor']],
      newcomers: [['worker'], ['claimNext']],
      http: true,
      isHasty: values.planted,
    })
    const { stories, ...figures } = result
    const isCounted = isConclusive(result, { lease })
    process.stderr.write(`  ${store}, ${row.name}${isCounted ? '' : ', not counted'}: ${JSON.stringify(figures)}\n`)
    for (const story of stories) process.stderr.write(`    ${story}\n`)
    if (isCounted) sum.runs++
    else sum.uncounted++
    if (isCounted)
      for (const name of ['tasks', 'taken', 'dead', 'completed', 'aborted'] as const) sum[name] += result[name]
  }
  const { runs, uncounted, tasks, taken, dead, completed, aborted } = sum
  process.stdout.write(
    `| ${store} | ${row.name} | ${runs} | ${taken} of ${tasks} | ${dead} of ${tasks / 2} | ${completed} | ${aborted} | ${uncounted} |\n`,
  )
  if (taken > 0 || dead > 0) process.exitCode = 1
}

const main = async (): Promise<void> => {
  if (values.help) return void process.stdout.write(HELP)
  const kinds = Object.keys(GROUNDS) as StoreKind[]
  const stores = kinds.filter((kind) => values.store === 'all' || values.store === kind)
  if (stores.length === 0) throw new Error(`--store is ${kinds.join(', ')} or all`)
  process.stdout.write(
    '| store | interruption | runs | leases taken | dead | completed | told lease-lost | not counted |\n',
  )
  process.stdout.write('|---|---|---|---|---|---|---|---|\n')
  for (const store of stores) {
    const ground = await GROUNDS[store]()
    try {
      for (const row of ground.rows) if (row.name.includes(values.row)) await runRow(store, ground, row)
    } finally {
      await ground.remove()
      removeFolders()
    }
  }
}

await main()
