/**
 * Values with a key of their own: the write that refers to them takes effect, another process writes, and only then does the
 * first one learn that its write was not answered, or was refused because a proxy had sent it twice.
 */
import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../../src/core/errors.ts'
import { archive, complete } from '../../src/core/machine.ts'
import { recordSteps, signal } from '../../src/core/steps/steps.ts'
import { applyChange, type Change, type TaskRecord } from '../../src/core/task.ts'
import type { Entry, Mark } from '../../src/store/kv/access/key-value.ts'
import { KEYS, TASKS } from '../../src/store/kv/records/names.ts'
import type { Store } from '../../src/store/store.ts'
import { claimOne, idOf, want } from '../../src/testing/conformance/build.ts'
import { violations } from './invariants.ts'
import { openKvInMemory } from './open.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'
import { fresh, NOW, withKey } from './scenes.ts'

const LARGE = JSON.stringify('large'.repeat(1_000))
const OPTIONS = { inlineLimit: 64, wall: () => NOW }
const json = (text: string) => ({ text, encoding: 'json' as const })
const actor = { now: NOW + 1, by: 'operator', op: 'call' }
const holder = ({ lease }: TaskRecord) => ({ token: lease!.token })

type Answer = 'lost' | 'refused'

/** The next write under a prefix takes effect, then others write, and then comes its answer. */
class Interrupted extends MemoryKeyValue {
  under: string | null = null
  answer: Answer = 'lost'
  meanwhile: () => Promise<unknown> = async () => {}

  override async create(key: string, value: string): Promise<Mark | null> {
    return this.#answer(key, await super.create(key, value))
  }

  override async update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    return this.#answer(key, await super.update(key, value, mark))
  }

  async #answer(key: string, mark: Mark | null): Promise<Mark | null> {
    if (this.under === null || !key.startsWith(this.under)) return mark
    this.under = null
    await this.meanwhile()
    if (this.answer === 'lost') throw new HoldfastError('STORE_UNAVAILABLE', 'planted')
    return null
  }
}

/** Two processes on one map. The first is interrupted. */
const begin = (answer: Answer) => {
  const map = new KeyValueMap()
  const kv = new Interrupted(map, OPTIONS)
  kv.answer = answer
  return { map, kv, here: openKvInMemory(kv), there: openKvInMemory(new MemoryKeyValue(map, OPTIONS)) }
}

const stored = async (store: Store, n = 1): Promise<TaskRecord> => {
  const [task] = await store.get([idOf(n)])
  expect(task, `task ${n}`).toBeTruthy()
  return task!
}

const look = (store: Store): Promise<TaskRecord> => claimOne(store, { now: NOW, limit: 1, leaseTtl: 5_000 })

const renewAgain = async (store: Store): Promise<void> => {
  const { lease } = await stored(store)
  expect(await store.renew([{ id: idOf(1), token: lease!.token, leaseTtl: 6_000 }], NOW + 2)).toEqual(['held'])
}

const archiveIt = async (store: Store): Promise<void> => {
  expect(await store.commit([archive(await stored(store), actor)!])).toEqual(['written'])
}

interface Write {
  readonly of: string
  run(store: Store, leased: TaskRecord): Promise<unknown>
  /** By the other process, after the write and before its answer. */
  meanwhile(store: Store): Promise<void>
  read(task: TaskRecord): string | null | undefined
}

const changing = (decide: (task: TaskRecord) => Change | null) => (store: Store, leased: TaskRecord) =>
  store.commit([decide(leased)!])

const writes: readonly Write[] = [
  {
    of: 'a step',
    run: changing((task) =>
      recordSteps(task, holder(task), [{ name: 'a', value: json(LARGE) }], { now: NOW + 1, maxPayload: 9_000 }),
    ),
    meanwhile: renewAgain,
    read: ({ journal }) => journal[0]?.value,
  },
  {
    of: 'a signal',
    run: changing((task) => signal(task, { id: 's', name: 'a', value: json(LARGE) }, actor, 9_000)),
    meanwhile: renewAgain,
    read: ({ journal }) => journal[0]?.value,
  },
  {
    of: 'progress',
    run: (store, { id, lease }) =>
      store.renew([{ id, token: lease!.token, leaseTtl: 5_000, progress: LARGE }], NOW + 1),
    meanwhile: renewAgain,
    read: ({ progress }) => progress,
  },
  {
    of: 'an end',
    run: changing((task) => complete(task, holder(task), json(LARGE), NOW + 1)),
    meanwhile: archiveIt,
    read: ({ output }) => output,
  },
]

describe.each<Answer>(['lost', 'refused'])('a large value whose write is answered late and %s', (answer) => {
  test.each(writes)('stays when it is of $of', async ({ run, meanwhile, read }) => {
    const { map, kv, here, there } = begin(answer)
    await here.insert([{ task: fresh(1) }], { now: NOW })
    const leased = await look(here)
    kv.meanwhile = () => meanwhile(there)
    kv.under = TASKS
    await run(here, leased)
    await here.close()
    expect(violations(map)).toEqual([])
    expect(read(await stored(there))).toBe(LARGE)
  })

  test.each([
    { how: 'alone', insertion: { task: fresh(1, { input: LARGE }) } },
    { how: 'under a key', insertion: { ...withKey(1, 'k'), task: { ...withKey(1, 'k').task, input: LARGE } } },
  ])('stays when it is the input of a task submitted $how, and the task is created', async ({ insertion }) => {
    const { map, kv, here, there } = begin(answer)
    kv.meanwhile = () => look(there)
    kv.under = TASKS
    expect(await here.insert([insertion], { now: NOW })).toEqual([{ outcome: 'created' }])
    await here.close()
    expect(violations(map)).toEqual([])
    expect((await stored(there)).input).toBe(LARGE)
  })

  test('stays when it is the input of a task whose key has passed to another one', async () => {
    const { kv, here, there } = begin(answer)
    const insertion = withKey(1, 'k')
    kv.meanwhile = () => there.insert([{ ...withKey(2, 'k'), replaces: idOf(1) }], { now: NOW })
    kv.under = KEYS
    await here.insert([{ ...insertion, task: { ...insertion.task, input: LARGE } }], { now: NOW })
    await here.close()
    expect((await stored(there)).input).toBe(LARGE)
  })

  test('is gone with a task that was run and removed meanwhile, and the task does not run again', async () => {
    const { map, kv, here, there } = begin(answer)
    kv.meanwhile = async () => {
      const leased = await look(there)
      const done = complete(leased, holder(leased), json('1'), NOW + 1)
      await there.commit([done])
      await there.remove([{ id: idOf(1), revision: applyChange(leased, done).revision, endKey: false }])
    }
    kv.under = TASKS
    expect(await here.insert([{ task: fresh(1, { input: LARGE }) }], { now: NOW })).toEqual([{ outcome: 'created' }])
    await Promise.all([here.close(), there.close()])
    expect([...map.entries.keys()].filter((key) => key.startsWith('large/'))).toEqual([])
    const later = openKvInMemory(new MemoryKeyValue(map, OPTIONS))
    expect(await later.get([idOf(1)])).toEqual([null])
    expect((await later.claim(want({ now: NOW + 5, limit: 1 }))).leased).toEqual([])
  })
})

const largeIn = ({ entries }: KeyValueMap): string[] => [...entries.keys()].filter((key) => key.startsWith('large/'))

describe('a large value of a write that was refused', () => {
  test('is deleted when another process wrote first', async () => {
    const { map, here, there } = begin('lost')
    await here.insert([{ task: fresh(1) }], { now: NOW })
    const leased = await look(here)
    await there.commit([complete(leased, holder(leased), json('1'), NOW + 1)])
    const late = complete(leased, holder(leased), json(LARGE), NOW + 2)
    expect(await here.commit([late])).toEqual(['conflict'])
    await here.close()
    expect(largeIn(map)).toEqual([])
  })

  test('is deleted when its key stands for another task', async () => {
    const { map, here } = begin('lost')
    const second = withKey(2, 'k')
    await here.insert([withKey(1, 'k')], { now: NOW })
    await here.insert([{ ...second, task: { ...second.task, input: LARGE } }], { now: NOW })
    await here.close()
    expect(largeIn(map)).toEqual([])
  })

  test('stays while the task can only be read as it was before', async () => {
    class Behind extends MemoryKeyValue {
      stale: Entry | null = null
      override async get(key: string): Promise<Entry | null> {
        return key.startsWith(TASKS) && this.stale !== null ? this.stale : super.get(key)
      }
    }
    const { map, there } = begin('lost')
    const kv = new Behind(map, OPTIONS)
    const here = openKvInMemory(kv)
    await here.insert([{ task: fresh(1) }], { now: NOW })
    const leased = await look(here)
    kv.stale = (await kv.get(`${TASKS}01/${idOf(1)}.json`))!
    await there.commit([complete(leased, holder(leased), json('1'), NOW + 1)])
    await here.commit([complete(leased, holder(leased), json(LARGE), NOW + 2)]).catch(() => {})
    await here.close()
    expect(largeIn(map).length).toBeGreaterThan(0)
  })
})
