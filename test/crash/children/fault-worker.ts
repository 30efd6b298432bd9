/** A worker of the long campaign: ten types of handlers, each run written down; its wall clock is set by SIGUSR2. */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../../../src/connect.ts'
import type { TaskContext } from '../../../src/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { silentLogger } from '../../../src/runtime/telemetry/logger.ts'
import { openWitness } from '../../../src/testing/index.ts'
import { openAt } from '../address.ts'
import { type Plant, planted } from '../planted.ts'
import { chance } from '../seed.ts'
import { planOf, say } from './child.ts'

export interface FaultWorkerPlan {
  readonly address: string
  readonly logs: string
  readonly seed: number
  readonly leaseTtl: number
  readonly queues: readonly string[]
  readonly plant: Plant
}

const { address, logs, seed, leaseTtl, queues, plant } = planOf<FaultWorkerPlan>()
const { between, roll } = chance(seed)
const witness = openWitness(logs)
process.on('unhandledRejection', witness.unhandled)

const HOUR = 3_600_000
let offset = 0
process.on('SIGUSR2', () => {
  offset = between(-HOUR, HOUR)
})
const clock = { ...systemClock, wall: () => systemClock.wall() + offset }

const client = await connect(planted(await openAt(address, false), plant), { logger: silentLogger, clock })
const worker = client
  .worker({
    concurrency: 4,
    leaseTtl: { milliseconds: leaseTtl },
    queues: [...queues],
    pollInterval: '500ms',
    hooks: {
      onTaskEnd: (task, error) => {
        if (error?.code === 'STALE_LEASE') say('late', { task: task.id, fence: task.attempts })
      },
    },
  })
  .use(witness.runs)

/** What a run returns differs from what every other run would. */
const value = ({ task, fence }: TaskContext) => ({ of: task.id, fence, by: process.pid })

worker
  .handle('quick', (_, ctx) => value(ctx))
  .handle('slow', async (_, ctx) => {
    await sleep(between(200, 1_500), null, { signal: ctx.signal })
    return value(ctx)
  })
  .handle('moody', async (_, ctx) => {
    await sleep(between(0, 100))
    if (roll() < 0.3) throw new Error(`no luck ${between(0, 5)}`)
    return value(ctx)
  })
  // Does not look at its signal: it goes on beside its successor, and its result comes late.
  .handle('stubborn', async (_, ctx) => {
    await sleep(between(300, 2_000))
    return value(ctx)
  })
  .handle('grouped', async (_, ctx) => {
    await sleep(between(20, 300))
    return value(ctx)
  })
  .handle('stepped', async (_, ctx) => {
    const first = await ctx.step('first', () => ({ by: process.pid }))
    await ctx.sleep('nap', { milliseconds: between(50, 500) })
    const both = await Promise.all([ctx.step('left', () => 1), ctx.step('right', () => 'r'.repeat(2_000))])
    return { first, both, ...value(ctx) }
  })
  .handle('waiting', (_, ctx) =>
    ctx.waitFor('word', { timeout: '5s' }).catch((error: Error) => {
      if (error.name !== 'SignalTimeout') throw error
      return 'none came'
    }),
  )
  .handle('parent', async (_, ctx) => {
    await witness.submit(() => client.submit('quick', { of: ctx.task.id }, { idempotencyKey: `child-${ctx.task.id}` }))
    return value(ctx)
  })
  .handle('poison', async () => {
    await sleep(between(0, 100))
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => {})
  })
  .handle('tick', (_, ctx) => value(ctx))

witness.serves({ worker: worker.id, queues, types: worker.types })
say('ready')
await worker.run()
await client.close()
say('stopped')
