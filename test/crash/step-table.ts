/** The kills of step-campaign.ts on every store: node test/crash/step-table.ts [--store sqlite|postgres|s3|nats|all] */
import { parseArgs } from 'node:util'
import { freshAddress, printTable } from './by-store.ts'
import { stepCampaign } from './step-campaign.ts'

const { store } = parseArgs({ options: { store: { type: 'string', default: 'all' } } }).values

await printTable(store, {
  columns: ['kills', 'steps that ran twice'],
  row: async (kind, ground) => {
    const address = await freshAddress(ground)
    const { kills, repeated, violations } = await stepCampaign({ address, leaseTtl: kind === 's3' ? '4s' : '2s' })
    return { cells: [kills, repeated], violations }
  },
})
