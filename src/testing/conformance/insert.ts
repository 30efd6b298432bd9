/** Inserts: tasks are stored completely and unchanged, or refused because the id is taken. */
import assert from 'node:assert/strict'
import { STATUSES, type TaskRecord } from '../../core/task.ts'
import { idOf, insert, keyed, NOW, same, stored, task } from './build.ts'
import type { Case } from './case.ts'
import { population } from './moves.ts'

/** No field has its default value. */
const unusual: Partial<TaskRecord> = {
  queue: 'mail/eu-west.1:slow',
  type: 'send:mail',
  input: 'AP8=',
  encoding: 'base64',
  priority: -1000,
  availableAt: 8_640_000_000_000_000,
  expiresAt: 8_640_000_000_000_000,
  maxRetries: null,
  maxReschedules: 0,
  retryPolicy: { base: 0, multiplier: 1.5, max: 7, jitter: 'equal' },
  timeout: null,
  replayOf: idOf(900),
  scheduleId: 'nightly',
  tags: { customer: 'Ångström "& Sons"', ['__proto__']: 'plain', 'a.b[0]': '' },
}

const insertOutcomes = async (store: Parameters<Case['run']>[0], tasks: readonly TaskRecord[]) =>
  (
    await store.insert(
      tasks.map((record) => ({ task: record })),
      { now: NOW },
    )
  ).map(({ outcome }) => outcome)

export const insertCases: readonly Case[] = [
  {
    name: 'a new task is read back field for field',
    async run(store) {
      await insert(store, task(1))
      same(await stored(store, idOf(1)), task(1))
    },
  },
  {
    name: 'a new task keeps every option that is not a default',
    async run(store) {
      await insert(store, task(1, unusual))
      same(await stored(store, idOf(1)), task(1, unusual))
    },
  },
  {
    name: 'limits of zero and of none are told from the defaults',
    async run(store) {
      const limits = [0, 3, null].flatMap((limit) =>
        [0, 3, null].map((other) => ({ maxRetries: limit, maxReschedules: other })),
      )
      const tasks = limits.map((fields, i) => task(i + 1, fields))
      await insert(store, ...tasks)
      for (const expected of tasks) same(await stored(store, expected.id), expected)
    },
  },
  {
    name: 'a task of any status is kept as it comes, with its past',
    async run(store) {
      assert.equal(new Set(population.map(({ status }) => status)).size, STATUSES.length)
      await insert(store, ...population)
      for (const expected of population) same(await stored(store, expected.id), expected)
    },
  },
  {
    name: 'a running task that is inserted keeps its lease and progress',
    async run(store) {
      const lease = { token: 'elsewhere.1', workerId: 'worker-9', claimedAt: NOW, expiresAt: NOW + 5, ttl: 5 }
      const running = task(1, {
        ...unusual,
        status: 'running',
        lease,
        progress: '{"at":3}',
        attempts: 4,
        startedAt: NOW,
        cancelRequestedAt: NOW + 1,
        revision: 9,
      })
      await insert(store, running)
      same(await stored(store, idOf(1)), running)
      assert.deepEqual(await store.renew([{ id: idOf(1), token: 'elsewhere.1', leaseTtl: 50 }], NOW), ['cancel'])
    },
  },
  {
    name: 'a pending task of revision 1 keeps counters that submit would not have made',
    async run(store) {
      const lastError = { name: 'Error', message: 'elsewhere', at: 5, attempt: 2 }
      const moves = [
        { retryCount: 2 },
        { rescheduleCount: 3 },
        { lastError },
        { startedAt: 7 },
        { replayedAs: idOf(77) },
        { output: '1' },
        { progress: '1' },
      ]
      const tasks = moves.map((fields, i) => task(i + 1, fields))
      await insert(store, ...tasks)
      for (const expected of tasks) same(await stored(store, expected.id), expected)
    },
  },
  {
    name: 'an id that is taken is a clash and brings the task that has it, with its history',
    async run(store) {
      const first = task(1, { input: '"first"' })
      await insert(store, first)
      const [clash] = await store.insert([{ task: task(1, { input: '"second"' }) }], { now: NOW })
      assert.equal(clash?.outcome, 'clash')
      same('task' in clash ? clash.task : null, first)
      same(await stored(store, idOf(1)), first)
    },
  },
  {
    name: 'in a large batch of tasks alike, those whose ids are taken clash and every other one is created',
    async run(store) {
      const taken = [1, 60, 77, 120].map((n) => task(n, { input: '"first"' }))
      await insert(store, ...taken)
      const batch = Array.from({ length: 120 }, (_, i) => task(i + 1, { input: String(i), queue: `q${i % 2}` }))
      const outcomes = await insertOutcomes(store, batch)
      const clashes = outcomes.flatMap((outcome, i) => (outcome === 'clash' ? [i + 1] : []))
      assert.deepEqual(clashes, [1, 60, 77, 120])
      for (const [i, record] of batch.entries())
        same(await stored(store, record.id), taken.find(({ id }) => id === record.id) ?? batch[i]!)
      assert.equal((await store.count({ queue: 'q0' }, { cap: 1_000, now: NOW })).count, 58)
    },
  },
  {
    name: 'a clash writes neither the task nor its key',
    async run(store) {
      await insert(store, task(1))
      const [clash] = await store.insert([keyed(1, 'k')], { now: NOW })
      assert.equal(clash?.outcome, 'clash')
      assert.equal(await store.find('k'), null)
      same(await stored(store, idOf(1)), task(1))
    },
  },
  {
    name: 'each task of a batch is created or refused by itself, in the order given',
    async run(store) {
      await insert(store, task(2))
      await store.insert([keyed(9, 'taken')], { now: NOW })
      const inserted = await store.insert(
        [{ task: task(1) }, { task: task(2) }, keyed(3, 'taken'), keyed(4, 'free'), { task: task(5) }],
        { now: NOW },
      )
      assert.deepEqual(
        inserted.map(({ outcome }) => outcome),
        ['created', 'clash', 'existing', 'created', 'created'],
      )
      const found = await store.get([1, 2, 3, 4, 5].map(idOf))
      assert.deepEqual(
        found.map((record) => record !== null),
        [true, true, false, true, true],
      )
    },
  },
  {
    name: 'an id that comes twice in one batch is created once',
    async run(store) {
      const twice = [task(1, { input: '1' }), task(1, { input: '2' })]
      assert.deepEqual(await insertOutcomes(store, twice), ['created', 'clash'])
      assert.equal((await stored(store, idOf(1))).input, '1')
    },
  },
  {
    name: 'of concurrent inserts of one id exactly one creates the task',
    async run(store) {
      const tries = Array.from({ length: 8 }, (_, i) => task(1, { input: `${i}` }))
      const outcomes = (await Promise.all(tries.map((record) => insertOutcomes(store, [record])))).flat()
      assert.equal(outcomes.filter((outcome) => outcome === 'created').length, 1)
      assert.equal(outcomes.filter((outcome) => outcome === 'clash').length, 7)
      assert.equal((await store.count({}, { cap: 10, now: NOW })).count, 1)
    },
  },
  {
    name: 'inserting nothing does nothing',
    async run(store) {
      assert.deepEqual(await store.insert([], { now: NOW }), [])
      assert.equal((await store.count({}, { cap: 10, now: NOW })).count, 0)
    },
  },
]
