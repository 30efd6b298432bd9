/** A worker that submits tasks itself, and computes without yielding as soon as their claim is on its way. */
import { setImmediate as turn } from 'node:timers/promises'
import { Tasks } from '../../../src/store/kv/records/tasks.ts'
import { type Plant, withMethods } from '../planted.ts'
import { open, planOf, say, standStill } from './child.ts'

export interface BusySubmitterPlan {
  readonly file: string
  readonly leaseTtl: string
  readonly tasks: number
  readonly computes: number
  readonly plant?: Plant
}

const { file, leaseTtl, tasks, computes, plant = 'none' } = planOf<BusySubmitterPlan>()
const compute = (): void => standStill(computes)
const leasesOneByOne = /^(s3|nats):/.test(file)
let claimed = (): void => {}
const client = await open(file, plant, (store) =>
  withMethods(store, {
    claim: (want) => {
      const claiming = store.claim(want)
      if (!leasesOneByOne) claimed()
      return claiming
    },
  }),
)
if (leasesOneByOne) {
  // From the first lease on: it is written, the others are on their way, and the worker knows of none.
  const { write } = Tasks.prototype
  Tasks.prototype.write = async function (...given) {
    const written = await write.apply(this, given)
    claimed()
    return written
  }
}
const worker = client
  .worker({ concurrency: tasks, leaseTtl })
  .handle('work', (_, ctx) => say('ran', { id: ctx.task.id, fence: ctx.fence }))
  .start()
say('ready')
// The thread that keeps leases has started by then, as in a worker that has been up for a while.
await new Promise<void>((done) => process.once('SIGUSR2', () => done()))
const isClaiming = new Promise<void>((done) => {
  claimed = () => {
    claimed = () => {}
    if (leasesOneByOne) compute()
    done()
  }
})
const submitting = client.submitMany(
  Array.from({ length: tasks }, () => ({ type: 'work', input: null })),
  // All are there before the first is leased.
  { maxRetries: 0, ...(leasesOneByOne ? { delay: '2s' } : null) },
)
// On a server the statement has to leave first.
if (file.includes('://')) await submitting
await isClaiming
if (!leasesOneByOne) {
  if (file.includes('://')) await turn()
  compute()
}
await submitting
say('computed')
process.once('SIGTERM', () => void worker.stop().then(() => client.close()))
