/** The long tier of the limits, by hand: on every store, with more kills and stops than the suite has. */
import { parseArgs } from 'node:util'
import { freshAddress, printTable } from './by-store.ts'
import { limitCampaign } from './limit-campaign.ts'
import type { Plant } from './planted.ts'

const HELP = `Kills and stops workers under limits (1, 2 and 7 of a group, 7 of a queue), loses replies, ends connections of PostgreSQL on the server, and
counts how many tasks ran at once.

  node test/crash/limit-table.ts [options]

  --store NAME     sqlite, postgres, s3, nats, or all (the default); servers are started
  --kills N        default 40
  --stops N        default 20: past the lease
  --groups N       default 300
  --backlog N      tasks that wait while there are faults to come (default 600)
  --processes N    default 6
  --seed N         default 1
  --planted NAME   a bug instead of lost replies: one-too-many, counts-before-claiming
  --help           print this help
`

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'all' },
    kills: { type: 'string', default: '40' },
    stops: { type: 'string', default: '20' },
    groups: { type: 'string', default: '300' },
    backlog: { type: 'string', default: '600' },
    processes: { type: 'string', default: '6' },
    seed: { type: 'string', default: '1' },
    planted: { type: 'string', default: 'lost-replies' },
    help: { type: 'boolean', default: false },
  },
})

const main = (): Promise<void> =>
  printTable(values.store, {
    columns: [
      'tasks',
      'completed',
      'runs',
      'kills',
      'stops',
      'connections ended',
      'most of a group (1, 2, 7)',
      'most of a queue (7)',
    ],
    row: async (_, ground) => {
      const address = await freshAddress(ground)
      let ended = 0
      const { endConnections } = ground
      const { violations, most, ...counts } = await limitCampaign({
        address,
        backlog: Number(values.backlog),
        groups: Number(values.groups),
        kills: Number(values.kills),
        stops: Number(values.stops),
        processes: Number(values.processes),
        seed: Number(values.seed),
        plant: values.planted as Plant,
        ...(endConnections && {
          alsoBreak: async () => {
            ended += await endConnections(address)
          },
        }),
      })
      const { submitted, completed, runs, kills, stops } = counts
      const ofGroups = `${most['one']}, ${most['two']}, ${most['seven']}`
      return { cells: [submitted, completed, runs, kills, stops, ended, ofGroups, most['whole']!], violations }
    },
  })

await (values.help ? process.stdout.write(HELP) : main())
