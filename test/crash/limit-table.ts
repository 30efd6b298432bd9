/** The long tier of the limits, by hand: on every store, with more kills and stops than the suite has. */
import { parseArgs } from 'node:util'
import { GROUNDS, type StoreKind } from './interruption-rows.ts'
import { limitCampaign } from './limit-campaign.ts'
import { removeFolders } from './processes.ts'

const HELP = `Kills and stops workers under limits (1, 2 and 7 of a group, 7 of a queue), loses replies, and counts how many tasks ran at once.

  node test/crash/limit-table.ts [options]

  --store NAME     sqlite, postgres, s3, nats, or all (the default); servers are started
  --kills N        default 40
  --stops N        default 20: past the lease
  --groups N       default 300
  --processes N    default 6
  --seed N         default 1
  --help           print this help
`

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'all' },
    kills: { type: 'string', default: '40' },
    stops: { type: 'string', default: '20' },
    groups: { type: 'string', default: '300' },
    processes: { type: 'string', default: '6' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})

const runStore = async (store: StoreKind): Promise<void> => {
  const ground = await GROUNDS[store]()
  try {
    const { violations, most, ...counts } = await limitCampaign({
      address: (await ground.fresh()).replace(/^sqlite:/, ''),
      backlog: 600,
      groups: Number(values.groups),
      kills: Number(values.kills),
      stops: Number(values.stops),
      processes: Number(values.processes),
      seed: Number(values.seed),
      plant: 'lost-replies',
    })
    const { submitted, completed, runs, kills, stops } = counts
    process.stdout.write(
      `| ${store} | ${submitted} | ${completed} | ${runs} | ${kills} | ${stops} | ${most['one']}, ${most['two']}, ${most['seven']} | ${most['whole']} | ${violations.length} |\n`,
    )
    for (const violation of violations) process.stderr.write(`  ${violation}\n`)
    if (violations.length > 0) process.exitCode = 1
  } finally {
    await ground.remove()
  }
}

const main = async (): Promise<void> => {
  if (values.help) return void process.stdout.write(HELP)
  const kinds = Object.keys(GROUNDS) as StoreKind[]
  const stores = kinds.filter((kind) => values.store === 'all' || values.store === kind)
  if (stores.length === 0) throw new Error(`--store is ${kinds.join(', ')} or all`)
  process.stdout.write(
    '| store | tasks | completed | runs | kills | stops | most of a group (1, 2, 7) | most of a queue (7) | violations |\n',
  )
  process.stdout.write('|---|---|---|---|---|---|---|---|---|\n')
  for (const store of stores) await runStore(store)
}

await main().finally(removeFolders)
