/** Looks that may stop: what they bring is right, they say when they stopped, and who goes on misses nothing. */
import assert from 'node:assert/strict'
import { COUNTED_VIEWS, matchesView, VIEWS, viewFilter } from '../../core/views.ts'
import { glanceOf } from '../../store/plain-glance.ts'
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

const newest = async (store: Store, query: Query): Promise<string[]> =>
  idsOf(await store.list(query, { order: 'newest', limit: 1_000, now: NOW }))

/** Page after page, to the end. */
const allGlances = async (store: Store, query: Query, limit: number, most: number): Promise<string[]> => {
  const found: string[] = []
  let after: string | undefined
  for (;;) {
    const page = { limit, now: NOW, ...(after === undefined ? null : { after }) }
    const { tasks, stoppedAt } = await glanceOf(store).list(query, page, most)
    found.push(...idsOf(tasks))
    const next = tasks.length === limit ? tasks.at(-1)!.id : stoppedAt
    if (next === null) return found
    assert.ok(after === undefined || next < after, 'a look goes down, and never stands still')
    after = next
  }
}

export const glanceCases: readonly Case[] = [
  {
    name: 'a glance with room enough brings what a list brings, and counts what a count counts',
    async run(store) {
      await insert(store, ...crowd)
      for (const query of queries) {
        const expected = await newest(store, query)
        const { tasks, stoppedAt } = await glanceOf(store).list(query, { limit: 1_000, now: NOW }, 100_000)
        assert.deepEqual([idsOf(tasks), stoppedAt], [expected, null], JSON.stringify(query))
        for (const record of tasks) assert.deepEqual(record.history, [])
        const counted = await glanceOf(store).count(query, 1_000, 100_000, NOW)
        assert.deepEqual(counted, { count: expected.length, capped: false }, JSON.stringify(query))
      }
    },
  },
  {
    name: 'a glance that stops early says where to go on, and who does so meets every task once',
    async run(store) {
      await insert(store, ...crowd)
      for (const query of filters)
        for (const [limit, most] of [
          [10, 5],
          [50, 7],
        ] as const)
          assert.deepEqual(
            await allGlances(store, query, limit, most),
            await newest(store, query),
            `${JSON.stringify(query)}, ${most} at a time`,
          )
    },
  },
  {
    name: 'a count that stopped says so: it is never too high, and exact unless it says that there may be more',
    async run(store) {
      await insert(store, ...crowd)
      for (const query of queries) {
        const truth = (await newest(store, query)).length
        for (const [cap, most] of [
          [1_000, 5],
          [2, 100_000],
          [2, 5],
        ] as const) {
          const { count, capped } = await glanceOf(store).count(query, cap, most, NOW)
          assert.ok(capped ? count <= truth : count === truth, `${count} of ${truth}: ${JSON.stringify(query)}`)
        }
      }
    },
  },
  {
    name: 'the counts of a queue tell each view, and which of them may be more',
    async run(store) {
      await insert(store, ...crowd)
      for (const cap of [1_000, 10, 1]) {
        const names = ['other', 'default', 'empty']
        const all = await glanceOf(store).queues(names, cap, NOW)
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
