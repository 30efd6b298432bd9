/** A run whose lease is gone never begins, whatever kept the event loop busy in between. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { blockBatch } from './batch.ts'
import { cleanUp, folder } from './processes.ts'

cleanUp()

test('the second task of a batch does not begin behind a handler that blocked while another worker ran it', async () => {
  const { fences, task } = await blockBatch(join(folder(), 'batch.db'), 'none')
  expect(fences).toEqual([2])
  // It was never started, so its timeout did not count and no retry was charged.
  expect(task).toMatchObject({ status: 'completed', attempts: 2, retryCount: 0 })
})

test("the lease is checked before each handler is called: with the bug 'lying-keeper' it begins after its successor", async () => {
  const { fences } = await blockBatch(join(folder(), 'batch.db'), 'lying-keeper')
  expect(fences).toEqual([2, 1])
})
