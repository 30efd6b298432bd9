/** A process dies, or loses a reply, at every call of every scene: nothing is lost, and a later process finishes. */
import { describe, expect, test } from 'vitest'
import { complete, overdue } from '../../src/core/machine.ts'
import { isTerminal, TERMINAL_STATUSES } from '../../src/core/task.ts'
import type { KeyValue } from '../../src/store/kv/access/key-value.ts'
import { ENDED } from '../../src/store/kv/ended/segment-names.ts'
import { decodeTask } from '../../src/store/kv/records/bodies.ts'
import { hintsIn } from '../../src/store/kv/records/bundle-names.ts'
import { idOfTaskKey, READY, TASKS } from '../../src/store/kv/records/names.ts'
import type { Store } from '../../src/store/store.ts'
import { idOf, want } from '../../src/testing/conformance/build.ts'
import { leftovers, violations } from './invariants.ts'
import { openKvInMemory } from './open.ts'
import { Crashed, type Fault, FaultyKeyValue } from './places/faulty-key-value.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'
import { NOW, type Scene, scenes, withKey } from './scenes.ts'

const HOUR = 3_600_000

/** One key-value store with its clock, shared by all processes. */
const newPlace = () => {
  const map = new KeyValueMap()
  let wall = NOW
  const kv = (): MemoryKeyValue => new MemoryKeyValue(map, { inlineLimit: 64, wall: () => wall })
  return {
    map,
    kv,
    /** A process. It adds the tasks that it ended to the index when it closes or counts. */
    open: (own: KeyValue = kv()): Store => openKvInMemory(own, { timers: { mono: () => wall, after: () => () => {} } }),
    setWall: (instant: number): void => {
      wall = instant
    },
  }
}

type Place = ReturnType<typeof newPlace>

/** The disturbed call must not fail with another error than its fault allows. */
const disturbed = async (scene: Scene, store: Store, fault: Fault): Promise<boolean> => {
  try {
    await scene.run(store)
    return true
  } catch (error) {
    if (fault !== 'crash' || !(error instanceof Crashed)) throw error
    return false
  }
}

/** As a worker of another process: reports lapsed leases and completes what it can lease, until nothing is left. */
const drain = async (store: Store, from: number): Promise<void> => {
  let now = from
  for (let round = 0; round < 60; round++) {
    const { leased, due, next } = await store.claim(want({ now, limit: 10, leaseTtl: 5_000 }))
    const actor = { now, by: 'drain', op: `drain-${round}` }
    await store.commit([
      ...leased.map((task) =>
        complete(task, { token: task.lease!.token }, { text: '"drained"', encoding: 'json' }, now),
      ),
      ...due.flatMap((task) => overdue(task, actor, 0.5) ?? []),
    ])
    if (leased.length === 0 && due.length === 0) {
      if (next === null) return
      now = Math.max(now, next)
    }
  }
}

const stored = async (store: Store, n: number) => (await store.get([idOf(n)]))[0]

/** Runs the scene with one fault, then everything that other processes do afterwards. False: the scene has fewer calls. */
const runWith = async (scene: Scene, fault: Fault, at: number, place: Place, Faulty = FaultyKeyValue) => {
  const first = place.open()
  await scene.before?.(first)
  await first.close()
  place.setWall(NOW + (scene.later ?? 0))
  const faulty = new Faulty(place.kv(), fault, at)
  const victim = place.open(faulty)
  const wasAnswered = await disturbed(scene, victim, fault)
  await victim.close().catch(() => {})
  expect(violations(place.map)).toEqual([])
  const later = place.open()
  if (!wasAnswered) await scene.run(later)
  expect(violations(place.map)).toEqual([])
  for (const n of scene.tasks) expect(await stored(later, n), `task ${n}`).toBeTruthy()
  for (const n of scene.removes ?? []) expect(await stored(later, n), `task ${n}`).toBeNull()
  await checkKeys(scene, later, place)
  // Long enough for every lease to lapse, and then for hints whose task was never written.
  await drain(later, NOW + 10_000)
  for (const n of scene.tasks) {
    const record = await stored(later, n)
    expect(record && isTerminal(record.status), `task ${n} is ${record?.status}`).toBe(true)
  }
  for (let look = 0; look < 3; look++) {
    place.setWall(NOW + 4 * 24 * HOUR - (3 - look) * HOUR)
    await drain(later, NOW + (3 + look) * HOUR)
  }
  await checkIndex(later, place)
  await later.close()
  // Twice: a sweep that finishes a removal leaves a sweep entry for its key.
  for (let sweep = 0; sweep < 2; sweep++) {
    place.setWall(NOW + (4 * 24 + sweep) * HOUR)
    const sweeper = place.open()
    await sweeper.remove([{ id: idOf(99), revision: 1, endKey: false }])
    await sweeper.close()
  }
  expect(leftovers(place.map)).toEqual([])
  expect(violations(place.map)).toEqual([])
  return faulty.hasFailed
}

/** A list by status shows every ended task once. */
const checkIndex = async (store: Store, { map }: Place): Promise<void> => {
  const tasks = [...map.entries]
    .filter(([key]) => key.startsWith(TASKS))
    .map(([key, { value }]) => decodeTask(key, value))
  const ended = tasks.flatMap((body) => ('task' in body && isTerminal(body.task.status) ? [body.task] : []))
  for (const status of TERMINAL_STATUSES) {
    const found = (await store.list({ views: [{ status }] }, { order: 'oldest', limit: 100, now: NOW })).tasks
    const wanted = ended.filter((task) => task.status === status).map(({ id }) => id)
    expect(found.map(({ id }) => id)).toEqual(wanted.sort())
  }
}

/** A key never blocks, and never stands for two tasks. */
const checkKeys = async ({ tasks, removes = [], name }: Scene, store: Store, { map }: Place): Promise<void> => {
  if (!name.includes('key')) return
  const [again] = await store.insert([withKey(9, 'k')], { now: NOW + 1 })
  const endsKey = name.includes('ends the key')
  expect(again!.outcome).toBe(endsKey ? 'created' : 'existing')
  if (again!.outcome === 'existing') expect(again!.key.taskId).toBe(idOf([...tasks, ...removes].at(-1)!))
  expect(violations(map)).toEqual([])
}

const FAULTS: readonly Fault[] = ['crash', 'refused', 'unheard']

describe.each(FAULTS)('%s at every call', (fault) => {
  test.each(scenes)('of $name loses nothing and leaves nothing that blocks', async (scene) => {
    let at = 1
    while (await runWith(scene, fault, at, newPlace())) at++
    expect(at).toBeGreaterThan(2)
  })
})

/** Writes a hint after its task: the bug that the order of writes prevents. */
class HintsAfterwards extends FaultyKeyValue {
  readonly #late: string[] = []

  override async create(key: string, value: string): Promise<string | null> {
    if (key.startsWith(READY)) {
      this.#late.push(key)
      return 'later'
    }
    const mark = await super.create(key, value)
    if (key.startsWith(TASKS)) for (const hint of this.#late.splice(0)) await super.create(hint, '')
    return mark
  }
}

/** Withdraws a bundle as soon as the first of its tasks has ended: the bug that bundles invite. */
class GoesWithTheFirst extends FaultyKeyValue {
  override async update(key: string, value: string, mark: string): Promise<string | null> {
    const written = await super.update(key, value, mark)
    if (written === null || !key.startsWith(TASKS) || !value.includes('"hint":null')) return written
    const names = (hints: string): boolean => hintsIn(hints).some(({ id }) => id === idOfTaskKey(key))
    await super.delete((await super.list(READY, { limit: 1_000 })).filter(names))
    return written
  }
}

/** Withdraws hints before the segments are written: the bug that the index prevents by keeping hints. */
class DropsHintsFirst extends FaultyKeyValue {
  override async create(key: string, value: string): Promise<string | null> {
    if (key.startsWith(ENDED)) await super.delete(await super.list(READY, { limit: 1_000 }))
    return super.create(key, value)
  }
}

/** Adds a task that had no hint to the index, without a hint until that is done. */
class NoHintForEnded extends FaultyKeyValue {
  override async update(key: string, value: string, mark: string): Promise<string | null> {
    const written = await super.update(key, value, mark)
    if (written !== null && key.startsWith(TASKS) && value.includes('"archived"'))
      await super.delete(await super.list(READY, { limit: 1_000 }))
    return written
  }
}

const sceneOf = (words: string): Scene => scenes.find(({ name }) => name.includes(words))!

test.each([
  { bug: 'writes its hints after its tasks', Faulty: HintsAfterwards, scene: sceneOf('an insert under a key') },
  { bug: 'writes the hint of a batch after its tasks', Faulty: HintsAfterwards, scene: sceneOf('which shares') },
  { bug: 'takes a shared hint away too early', Faulty: GoesWithTheFirst, scene: sceneOf('most of a batch') },
  {
    bug: 'drops hints before the index has their tasks',
    Faulty: DropsHintsFirst,
    scene: sceneOf('a claim and its end'),
  },
  { bug: 'archives without a hint', Faulty: NoHintForEnded, scene: sceneOf('an archive, and back') },
])('a store that $bug is caught', async ({ Faulty, scene }) => {
  const isCaught = async (at: number): Promise<boolean> => {
    try {
      await runWith(scene, 'crash', at, newPlace(), Faulty)
      return false
    } catch (error) {
      return (
        error instanceof Error &&
        'actual' in error &&
        /no claim will find it|has no hint/.test(JSON.stringify(error.actual))
      )
    }
  }
  const calls = Array.from({ length: 30 }, (_, i) => i + 1)
  expect(await Promise.all(calls.map(isCaught))).toContain(true)
})
