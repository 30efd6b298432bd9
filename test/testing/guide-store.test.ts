/** What the author of a store writes, as docs/testing.md shows it; here with the memory store in the author's place. */
import { afterEach, describe, expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { openMemory } from '../../src/store/memory/store.ts'
import type { Store } from '../../src/store/store.ts'
import { checkHistory, conformanceCases, drain, lossy, onceFor, walk } from '../../src/testing/index.ts'

const openMyStore = async (): Promise<Store> => openMemory()

let store: Store
afterEach(() => store.close())

describe('my store keeps the contract', () => {
  for (const { name, needs = [], run } of conformanceCases) {
    test(name, async (context) => {
      store = await openMyStore()
      const missing = needs.filter((need) => !store.capabilities.has(need))
      if (missing.length > 0) return context.skip(`it does not claim ${missing.join(', ')}`)
      await run(store)
    })
  }
})

test('my store and the model agree after every step', async () => {
  for (const seed of [1, 2, 3]) {
    store = await openMyStore()
    await walk(store, { seed, steps: 200 })
  }
})

test('a lost reply is recognised', async () => {
  store = await openMyStore()
  const plan = onceFor('insert', 'lose-reply')
  const client = await connect(lossy(store, plan), { logger: silentLogger })
  const task = await client.submit('work', {})

  await drain(client, { work: () => 'done' })

  expect(plan.hits).toBe(1)
  expect((await client.list()).tasks).toHaveLength(1)
  expect(checkHistory({ tasks: [await client.get(task.id)], submitted: [task.id], drained: true })).toEqual([])
})
