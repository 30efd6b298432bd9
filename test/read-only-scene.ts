/** A store that refuses writes for longer than a lease, as a standby or a role without rights does: results wait until they can be written. */
import { expect } from 'vitest'
import { type Client, isHoldfastError } from '../src/index.ts'
import { until } from './crash/processes.ts'

interface Scene {
  /** Runs the tasks. */
  readonly client: Client
  /** Looks for work, and would take leases that have lapsed. */
  readonly other: Client
  readonly lease: number
  /** Of everybody. */
  readonly readOnly: (is: boolean) => Promise<void>
}

const TASKS = 20

/** No result is lost, and no task is taken from its worker. */
export const keepsResultsWhileReadOnly = async ({ client, other, lease, readOnly }: Scene): Promise<void> => {
  const leaseTtl = `${lease}ms`
  let started = 0
  const finished = Promise.withResolvers<void>()
  client
    .worker({ concurrency: TASKS, leaseTtl })
    .handle('work', async () => {
      started++
      await finished.promise
      return 'result'
    })
    .start()
  other
    .worker({ leaseTtl })
    .handle('nothing', () => {})
    .start()
  await client.submitMany(
    Array.from({ length: TASKS }, () => ({ type: 'work', input: null })),
    { maxRetries: 0 },
  )
  await until('all have started', () => started === TASKS)
  await readOnly(true)
  const isReadOnly = async (): Promise<boolean> =>
    other.submit('other', null).then(
      () => false,
      (error: unknown) => isHoldfastError(error, 'STORE_READ_ONLY'),
    )
  await until('writes are refused', isReadOnly)
  finished.resolve()
  const begun = performance.now()
  await until('the leases have lapsed', () => performance.now() - begun > 2 * lease)
  await readOnly(false)
  const counted = async (status: string) => (await other.count({ type: 'work', status })).count
  await until('all have ended', async () => (await counted('running').catch(() => TASKS)) === 0)
  expect({ completed: await counted('completed'), failed: await counted('failed') }).toEqual({
    completed: TASKS,
    failed: 0,
  })
}
