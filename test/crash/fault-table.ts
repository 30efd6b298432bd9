/** `npm run campaign`: every fault at once on real stores, by hand, and what the checker says of it. */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { printTableOf } from './by-store.ts'
import { faultCampaign } from './fault-campaign.ts'
import { FAULT_PLACES } from './fault-places.ts'
import type { Plant } from './planted.ts'

/** Hundreds of processes compile the same files: once is enough. */
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url))

const HELP = `Six worker processes and a producer (ten types, three queues, groups, limits, steps, signals, schedules) under every fault
that the store has, until the time is over and there were enough kills and late writes. Then everything drains, and \`holdfast verify\` checks the store and the logs. Exits with 1 if there is a violation.

  npm run campaign -- --store NAME [options]

  --store NAME     sqlite, postgres, s3, nats, or all (the default); servers are started
  --minutes M      default 5
  --most M         go on no longer for the kills and late writes that are wanted (default: twice the minutes)
  --kills N        of workers, by kill -9 (default 0: as many as there are)
  --late N         late writes of paused workers that were refused, as many as wanted (default 0)
  --seed N         of the choices; the timing of processes is not repeatable (default 1)
  --planted NAME   a bug that the checker must notice: ignore-lease, hasty-reclaim, complete-on-claim, claim-twice
  --help           print this help
`

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'all' },
    minutes: { type: 'string', default: '5' },
    most: { type: 'string' },
    kills: { type: 'string', default: '0' },
    late: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    planted: { type: 'string', default: 'none' },
    help: { type: 'boolean', default: false },
  },
})

const main = (): Promise<void> =>
  printTableOf(values.store, FAULT_PLACES, {
    columns: ['server', 'minutes', 'tasks', 'runs', 'facts checked', 'faults', 'late writes refused'],
    row: async (_, place) => {
      const outcome = await faultCampaign({
        place,
        minutes: Number(values.minutes),
        ...(values.most !== undefined && { mostMinutes: Number(values.most) }),
        kills: Number(values.kills),
        lateWrites: Number(values.late),
        seed: Number(values.seed),
        plant: values.planted as Plant,
        say: (line) => void process.stderr.write(`  ${line}\n`),
      })
      const { verification, faults, lateWrites, minutes, violations } = outcome
      for (const { invariant, checked, of, violations: n } of verification.verdicts)
        process.stderr.write(`  ${invariant}: ${n} violations, ${checked} ${of}\n`)
      const happened = Object.entries(faults).map(([name, times]) => `${times} ${name}`)
      const found = verification.found.map(({ invariant, task, what }) => `${invariant}: ${task ?? ''} ${what}`)
      const checked = verification.verdicts.reduce((sum, verdict) => sum + verdict.checked, 0)
      const { tasks, witness } = verification
      return {
        cells: [place.server, minutes.toFixed(1), tasks, witness.runs, checked, happened.join(', '), lateWrites],
        violations: [...violations, ...found],
      }
    },
  })

await (values.help ? process.stdout.write(HELP) : main())
