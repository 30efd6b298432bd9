/** The long tier of coalescing, by hand: on every store, with more triggers than the suite has. */
import { parseArgs } from 'node:util'
import { freshAddress, printTable } from './by-store.ts'
import { coalesceCampaign } from './coalesce-campaign.ts'

const HELP = `Triggers coalesced tasks from four processes while two others run them and replies are lost, and checks that the last trigger of each key is
followed by a run that began after it, and that no key has two tasks that were never claimed.

  node test/crash/coalesce-table.ts [options]

  --store NAME     sqlite, postgres, s3, nats, or all (the default); servers are started
  --triggers N     default 10000
  --keys N         default 100
  --seed N         default 1
  --help           print this help
`

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'all' },
    triggers: { type: 'string', default: '10000' },
    keys: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})

const main = (): Promise<void> =>
  printTable(values.store, {
    columns: ['triggers', 'keys', 'runs', 'looks for two unclaimed tasks of a key'],
    row: async (_, ground) => {
      const keys = Number(values.keys)
      const { triggered, runs, looks, violations } = await coalesceCampaign({
        address: await freshAddress(ground),
        processes: 4,
        triggers: Number(values.triggers),
        keys,
        seed: Number(values.seed),
        plant: 'lost-replies',
      })
      return { cells: [triggered, keys, runs, looks], violations }
    },
  })

await (values.help ? process.stdout.write(HELP) : main())
