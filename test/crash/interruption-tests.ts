/** The short tier of the interruptions: every row of a store once, and a planted bug. The long one: node test/crash/interruption-campaign.ts. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Interruption, type InterruptionPlan, type InterruptionResult, interrupt } from './interruption.ts'
import { GROUNDS, type Ground, type StoreKind } from './interruption-rows.ts'
import { report } from './seed.ts'

const LEASE = 4_000
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

/** `names`: of all rows, which are known only once the server has started. */
export const interruptionTests = (store: StoreKind, names: readonly string[]): void => {
  let ground: Ground
  beforeAll(async () => {
    ground = await GROUNDS[store]()
  })
  afterAll(() => ground.remove())

  const run = async (name: string, isHasty: boolean): Promise<InterruptionResult> => {
    const row = ground.rows.find((one) => one.name === name)!
    const result = await interrupt({ ...plan(await ground.fresh(), row), isHasty })
    report(`${store}, ${name}${isHasty ? ', planted bug' : ''}: ${result.taken} of ${result.tasks} leases taken`)
    return result
  }

  test('every row is run', () => {
    expect(names).toEqual(ground.rows.map(({ name }) => name))
  })

  test.each(names)(
    '%s for longer than a lease: no lease of a living worker is taken',
    { timeout: 180_000 },
    async (name) => {
      const { taken, dead, completed, stories } = await run(name, false)
      expect({ taken, dead, completed, stories }).toEqual({ taken: 0, dead: 0, completed: TASKS, stories: [] })
    },
  )

  test(`shows takers that do not wait for a lease length of contact: ${names[0]}`, { timeout: 180_000 }, async () => {
    const { taken, dead } = await run(names[0]!, true)
    expect(taken).toBeGreaterThan(0)
    expect(dead).toBeGreaterThan(0)
  })
}
