/** The long tier of the rates, by hand: four processes share one rate for minutes. */
import { parseArgs } from 'node:util'
import { freshAddress, printTable } from './by-store.ts'
import { rateCampaign } from './rate-campaign.ts'

const HELP = `Runs tasks in four processes under a rate of 60 a minute, with more work than it permits, and counts the starts in every window of a minute.

  node test/crash/rate-table.ts [options]

  --store NAME     sqlite, postgres, s3, nats, or all (the default); servers are started
  --burst N        default 1
  --minutes N      default 3
  --help           print this help

Wanted: at most 60 + burst - 1 in any minute of the store's clock, and at least 57.
`

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'all' },
    burst: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '3' },
    help: { type: 'boolean', default: false },
  },
})

const WANTED = 57

const main = (): Promise<void> =>
  printTable(values.store, {
    columns: ['starts', 'by process', 'most in a minute', 'fewest in a minute'],
    row: async (_, ground) => {
      const { starts, byProcess, most, fewest, violations } = await rateCampaign({
        address: await freshAddress(ground),
        processes: 4,
        count: 60,
        window: 60_000,
        burst: Number(values.burst),
        lasts: Number(values.minutes) * 60_000,
        seed: 1,
      })
      const unused = fewest < WANTED ? [`${fewest} starts in one minute while work waited, ${WANTED} are wanted`] : []
      return { cells: [starts, byProcess.join(', '), most, fewest], violations: [...violations, ...unused] }
    },
  })

await (values.help ? process.stdout.write(HELP) : main())
