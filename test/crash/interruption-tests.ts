/**
 * The short tier of the interruptions: some rows of a store once, and a planted bug. Every row, and all of S3, whose clock and requests want a quiet
 * machine for leases this short: node test/crash/interruption-campaign.ts.
 */
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest'
import {
  type Interruption,
  type InterruptionPlan,
  type InterruptionResult,
  interrupt,
  isConclusive,
} from './interruption.ts'
import { GROUNDS, type Ground, type StoreKind } from './interruption-rows.ts'
import { report } from './seed.ts'

const LEASE = 3_000
/** Of a run that the machine was too busy for. */
const MOST_TRIES = 3
const TASKS = 10

/** Everything that takes leases, in two processes. */
const plan = (url: string, row: Interruption): InterruptionPlan => ({
  url,
  row: { ...row, newcomersAfter: row.newcomersAfter * (LEASE / 5_000) },
  tasks: TASKS,
  lease: LEASE,
  lasts: LEASE * 1.6,
  standing: [['claimNext', 'monitor']],
  newcomers: [['worker', 'claimNext']],
  http: false,
})

/** `names`: of rows, which are known only once the server has started. `planted`: the one that shows the planted bug. */
export const interruptionTests = (store: StoreKind, names: readonly string[], planted = names[0]!): void => {
  let ground: Ground
  beforeAll(async () => {
    ground = await GROUNDS[store]()
  })
  afterAll(() => ground.remove())

  const runOnce = async (name: string, isHasty: boolean): Promise<InterruptionResult> => {
    const row = ground.rows.find((one) => one.name === name)!
    const result = await interrupt({ ...plan(await ground.fresh(), row), isHasty })
    report(`${store}, ${name}${isHasty ? ', planted bug' : ''}: ${result.taken} of ${result.tasks} leases taken`)
    return result
  }

  const run = async (context: TestContext, name: string, isHasty: boolean): Promise<InterruptionResult> => {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const result = await runOnce(name, isHasty)
      if (isConclusive(result, { lease: LEASE })) return result
      report(`not counted: ${JSON.stringify(result)}`)
    }
    return context.skip(`the machine is too busy for leases of ${LEASE} ms`)
  }

  test('these rows exist', () => {
    expect(ground.rows.map(({ name }) => name)).toEqual(expect.arrayContaining([...names]))
  })

  for (const name of names)
    test(`${name} for longer than a lease: no lease of a living worker is taken`, {
      timeout: 300_000,
    }, async (context) => {
      const { taken, dead, completed, stories } = await run(context, name, false)
      expect({ taken, dead, completed, stories }).toEqual({ taken: 0, dead: 0, completed: TASKS, stories: [] })
    })

  test(`shows takers that do not wait for a lease length of contact: ${planted}`, {
    timeout: 300_000,
  }, async (context) => {
    let result = await run(context, planted, true)
    // On a busy machine a worker may renew its leases before a taker gets the processor.
    for (let tries = 1; tries < MOST_TRIES && result.dead === 0; tries++) result = await run(context, planted, true)
    expect(result.taken).toBeGreaterThan(0)
    expect(result.dead).toBeGreaterThan(0)
  })
}
