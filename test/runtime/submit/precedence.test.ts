/** Options from several places: the nearest to the task wins, also by another name, and undefined says nothing. */
import { expect, it } from 'vitest'
import { connect, defineTask, type SubmitOptions, silentLogger, type Task } from '../../../src/index.ts'
import { begin } from '../setup.ts'

const only = async (results: Promise<readonly { ok: boolean; task?: Task; error?: Error }[]>): Promise<Task> => {
  const [result] = await results
  if (!result!.ok) throw result!.error
  return result!.task!
}

it.each<[shared: SubmitOptions, own: SubmitOptions, expected: (now: number) => Record<string, unknown>]>([
  [{ ttl: '1h' }, { expiresAt: 9_999_999_999_999 }, () => ({ expiresAt: 9_999_999_999_999 })],
  [{ expiresAt: 9_999_999_999_999 }, { ttl: '1h' }, (now) => ({ expiresAt: now + 3_600_000 })],
  [{ maxRetries: 1 }, { maxAttempts: 5 }, () => ({ maxRetries: 4 })],
  [{ maxAttempts: 5 }, { maxRetries: 1 }, () => ({ maxRetries: 1 })],
  [{ delay: '1h' }, { at: 9_999_999_999_999 }, () => ({ availableAt: 9_999_999_999_999 })],
  [{ at: 9_999_999_999_999 }, { delay: '1h' }, (now) => ({ availableAt: now + 3_600_000 })],
  [{ timeout: '5s' }, { timeout: undefined } as never, () => ({ timeout: 5_000 })],
])('submitMany: shared %o and an item with %o', async (shared, own, expected) => {
  const { client } = await begin()
  const task = await only(client.submitMany([{ type: 'work', input: null, ...own }], shared))
  expect(task).toMatchObject(expected(task.createdAt))
})

const undefinedTimeout = { timeout: undefined } as never

it('an option that is undefined does not discard a default of the definition, of the client, or of a schedule', async () => {
  const { client } = await begin()
  const slow = defineTask('slow', { timeout: '7s' })
  expect((await client.submit(slow, null, undefinedTimeout)).timeout).toBe(7_000)
  expect((await only(client.submitMany([{ type: slow, input: null, ...(undefinedTimeout as object) }]))).timeout).toBe(
    7_000,
  )
  const schedule = await client.schedules.create({
    id: 'often',
    type: slow,
    input: null,
    every: '1h',
    options: undefinedTimeout,
  })
  expect((await client.schedules.trigger(schedule.id)).timeout).toBe(7_000)
  const other = await connect('memory:', { logger: silentLogger, defaults: { timeout: '9s' } })
  expect((await other.submit('plain', null, undefinedTimeout)).timeout).toBe(9_000)
  const unsaid = defineTask('unsaid', undefinedTimeout)
  expect((await other.submit(unsaid, null)).timeout).toBe(9_000)
  await other.close()
})
