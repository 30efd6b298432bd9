/** Bounded reads: their results are correct, they say when they stopped, and continuing misses nothing. */
import assert from 'node:assert/strict'
import { COUNTED_VIEWS, matchesView, VIEWS, viewFilter } from '../../core/views.ts'
import { countQueues } from '../../store/queue-counts.ts'
import type { Query, Store } from '../../store/store.ts'
import { idsOf, insert, NOW, task } from './build.ts'
import type { Case } from './case.ts'
import { population } from './moves.ts'

const crowd = [
  ...population,
  ...Array.from({ length: 40 }, (_, i) =>
    task(500 + i, {
      queue: i % 2 === 0 ? 'default' : 'other',
      type: i % 7 === 0 ? 'rare' : 'email',
      availableAt: i % 3 === 0 ? NOW + 5_000 : NOW,
      tags: i % 5 === 0 ? { customer: 'c1' } : null,
    }),
  ),
]

const filters: readonly Query[] = [
  {},
  { queue: 'other' },
  { type: 'rare' },
  { type: 'nothing' },
  { tag: { name: 'customer', value: 'c1' } },
  { views: [viewFilter('ready')], type: 'rare' },
  { views: [viewFilter('scheduled')], tag: { name: 'customer', value: 'c1' } },
  { views: [viewFilter('retrying'), viewFilter('ready')], queue: 'other' },
  { views: [viewFilter('completed'), viewFilter('running')] },
]
const queries = [...filters, ...VIEWS.map((view) => ({ views: [viewFilter(view)] }))]

const ORDERS = ['newest', 'oldest'] as const
type Order = (typeof ORDERS)[number]

const all = async (store: Store, query: Query, order: Order = 'newest'): Promise<string[]> =>
  idsOf((await store.list(query, { order, limit: 1_000, now: NOW })).tasks)

/** All pages. */
const allPages = async (
  store: Store,
  query: Query,
  { order, limit, maxScanned }: { readonly order: Order; readonly limit: number; readonly maxScanned: number },
): Promise<string[]> => {
  const found: string[] = []
  let after: string | undefined
  for (;;) {
    const page = { order, limit, maxScanned, now: NOW, ...(after === undefined ? null : { after }) }
    const { tasks, stoppedAt } = await store.list(query, page)
    found.push(...idsOf(tasks))
    const next = tasks.length === limit ? tasks.at(-1)!.id : stoppedAt
    if (next === null) return found
    assert.ok(
      after === undefined || (order === 'newest' ? next < after : next > after),
      'the cursor goes on with every page',
    )
    after = next
  }
}

export const boundedReadCases: readonly Case[] = [
  {
    name: 'a bounded read with a high enough limit returns what a list returns, and counts what a count counts',
    async run(store) {
      await insert(store, ...crowd)
      for (const query of queries)
        for (const order of ORDERS) {
          const expected = await all(store, query, order)
          const { tasks, stoppedAt } = await store.list(query, { order, limit: 1_000, maxScanned: 100_000, now: NOW })
          assert.deepEqual([idsOf(tasks), stoppedAt], [expected, null], JSON.stringify(query))
          for (const record of tasks) assert.deepEqual(record.history, [])
          const counted = await store.count(query, { cap: 1_000, maxScanned: 100_000, now: NOW })
          assert.deepEqual(counted, { count: expected.length, capped: false }, JSON.stringify(query))
        }
    },
  },
  {
    name: 'a bounded read that stops early says where to continue, and continuing meets every task once',
    async run(store) {
      await insert(store, ...crowd)
      for (const query of filters)
        for (const page of [
          { order: 'newest', limit: 10, maxScanned: 5 },
          { order: 'newest', limit: 50, maxScanned: 7 },
          { order: 'oldest', limit: 10, maxScanned: 5 },
        ] as const)
          assert.deepEqual(
            await allPages(store, query, page),
            await all(store, query, page.order),
            `${JSON.stringify(query)}, ${page.order}, ${page.maxScanned} at a time`,
          )
    },
  },
  {
    name: 'a bounded count that stopped says so: it is never too high, and exact unless it says that it is a lower bound',
    async run(store) {
      await insert(store, ...crowd)
      for (const query of queries) {
        const truth = (await all(store, query)).length
        for (const [cap, maxScanned] of [
          [1_000, 5],
          [2, 100_000],
          [2, 5],
        ] as const) {
          const { count, capped } = await store.count(query, { cap, maxScanned, now: NOW })
          assert.ok(capped ? count <= truth : count === truth, `${count} of ${truth}: ${JSON.stringify(query)}`)
        }
      }
    },
  },
  {
    name: 'the bounded counts of a queue have each view, and say which of them are lower bounds',
    async run(store) {
      await insert(store, ...crowd)
      for (const cap of [1_000, 10, 1]) {
        const names = ['other', 'default', 'empty']
        const all = await countQueues(store, names, cap, NOW)
        assert.equal(all.length, names.length)
        for (const [i, { capped, ...counts }] of all.entries()) {
          for (const view of COUNTED_VIEWS) {
            const isIn = (record: (typeof crowd)[number]): boolean =>
              record.queue === names[i] &&
              matchesView(record, viewFilter(view), NOW) &&
              !(view === 'scheduled' && record.retryCount > 0)
            const truth = crowd.filter(isIn).length
            const said = `${view} in ${names[i]}, cap ${cap}: ${counts[view]} of ${truth}`
            assert.ok(capped.includes(view) ? counts[view] <= truth : counts[view] === truth, said)
            if (cap === 1_000) assert.deepEqual(capped, [], said)
          }
        }
      }
    },
  },
]
