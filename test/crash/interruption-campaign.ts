/** The long tier of the interruptions, by hand: every row of a store, several times, with everybody who takes leases. */
import { parseArgs } from 'node:util'
import { interrupt } from './interruption.ts'
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

const runRow = async (store: StoreKind, { fresh }: Ground, row: Ground['rows'][number]): Promise<void> => {
  const sum = { runs: 0, tasks: 0, taken: 0, dead: 0, completed: 0, aborted: 0 }
  for (; sum.runs < Number(values.runs); sum.runs++) {
    const { stories, ...result } = await interrupt({
      url: await fresh(),
      row,
      tasks: Number(values.tasks),
      lease: Number(values.lease),
      lasts: Number(values.lasts),
      standing: [['claimNext'], ['monitor']],
      newcomers: [['worker'], ['claimNext']],
      http: true,
      isHasty: values.planted,
    })
    for (const name of Object.keys(result) as (keyof typeof result)[]) sum[name] += result[name]
    process.stderr.write(
      `  ${store}, ${row.name}: ${JSON.stringify(result)} \n${stories.map((story) => `    ${story}\n`).join('')}`,
    )
  }
  const { runs, tasks, taken, dead, completed, aborted } = sum
  process.stdout.write(
    `| ${store} | ${row.name} | ${runs} | ${taken} of ${tasks} | ${dead} of ${tasks / 2} | ${completed} | ${aborted} |\n`,
  )
  if (taken > 0 || dead > 0) process.exitCode = 1
}

const main = async (): Promise<void> => {
  if (values.help) return void process.stdout.write(HELP)
  const kinds = Object.keys(GROUNDS) as StoreKind[]
  const stores = kinds.filter((kind) => values.store === 'all' || values.store === kind)
  if (stores.length === 0) throw new Error(`--store is ${kinds.join(', ')} or all`)
  process.stdout.write('| store | interruption | runs | leases taken | dead | completed | told lease-lost |\n')
  process.stdout.write('|---|---|---|---|---|---|---|\n')
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
