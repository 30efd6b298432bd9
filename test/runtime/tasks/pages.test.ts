/** A walk over all tasks takes small pages where tasks are large, and leaves nothing out. */
import { expect, it } from 'vitest'
import type { Session } from '../../../src/runtime/session.ts'
import { pagesOf } from '../../../src/runtime/tasks/pages.ts'
import type { Store } from '../../../src/store/store.ts'
import { begin } from '../setup.ts'

const walked = async (store: Store): Promise<{ ids: string[]; pages: number[] }> => {
  const session = { store, clock: { mono: () => 0 } } as unknown as Session
  const ids: string[] = []
  const pages: number[] = []
  for await (const page of pagesOf(session, {})) {
    pages.push(page.length)
    ids.push(...page.map(({ id }) => id))
  }
  return { ids, pages }
}

it('pages grow while tasks are small, and every task is met once', async () => {
  const { client, store } = await begin()
  const results = await client.submitMany(Array.from({ length: 3_500 }, (_, n) => ({ type: 'a', input: n })))
  const { ids, pages } = await walked(store)
  expect(pages.slice(0, 4)).toEqual([50, 100, 200, 400])
  expect(Math.max(...pages)).toBe(1_000)
  expect(ids).toEqual(results.map((result) => result.ok && result.task.id).sort())
})

it('pages shrink to what fits when tasks are large', async () => {
  const { client, store } = await begin()
  for (let n = 0; n < 120; n++) await client.submit('a', 'x'.repeat(500_000))
  const { ids, pages } = await walked(store)
  expect(ids.length).toBe(120)
  expect(Math.max(...pages.slice(1))).toBeLessThanOrEqual(8)
})
