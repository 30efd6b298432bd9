/** Measures fair shares: a group with 100,000 tasks in front of 99 groups with 10 each. */
import { parseArgs } from 'node:util'
import { fairShares } from './fair-shares.ts'
import { freshClient } from './fresh-client.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'

const HELP = `Measures when 99 groups with 10 tasks each are done that wait behind a group with a long line, in a fair queue with 10 slots.

  node bench/fairness.ts [options]

  --store NAME     sqlite, postgres (starts a temporary server), or all (the default)
  --long N         tasks of the group in front (default 100000)
  --takes MS       a task takes (default 20)
  --runs N         default 3
  --help           print this help

Wanted: the last of the 99 is done within 1.5 times the time that perfect turns would take.
`

await runCommand(async () => {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: 'all' },
      long: { type: 'string', default: '100000' },
      takes: { type: 'string', default: '20' },
      runs: { type: 'string', default: '3' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return void console.log(HELP)
  const [long, takes] = [wholeNumber(values.long, '--long'), wholeNumber(values.takes, '--takes')]
  for (const field of fieldsOf(values.store)) {
    const { client, close } = await freshClient(field)
    for (let run = 0; run < wholeNumber(values.runs, '--runs'); run++) {
      const plan = { long, others: 99, each: 10, concurrency: 10, takes }
      const { latest, median, perfect, longBefore } = await fairShares(client, `fair-${run}`, plan)
      const times = (ms: number): string => (ms / perfect).toFixed(2)
      console.log(
        `${field}  the 99 groups: median ${times(median)}, latest ${times(latest)} times perfect turns (${Math.round(perfect)} ms); ${longBefore} tasks of the long line before them`,
      )
    }
    await close()
  }
})
