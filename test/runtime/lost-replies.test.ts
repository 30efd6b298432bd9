/** SPEC 3.2: for every kind of call the reply is lost once after the write, then the runtime repeats: no double, no loss. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { openMemory } from '../../src/store/memory/store.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { checkHistory } from '../../src/testing/check-history.ts'
import { type Fate, lossy, type StoreCall } from '../../src/testing/lossy-store.ts'
import { type Scene, scenes } from './lost-reply-scenes.ts'
import { keptOpen } from './setup.ts'

const folder = await mkdtemp(join(tmpdir(), 'holdfast-lost-replies-'))
afterAll(() => rm(folder, { recursive: true, force: true }))
let files = 0

const stores: Readonly<Record<string, () => Promise<Store>>> = {
  memory: async () => openMemory(),
  sqlite: () => openSqlite(join(folder, `${++files}.db`)),
}

const play = async (
  scene: Scene,
  fate: Fate,
  open: () => Promise<Store>,
  bug: (store: Store) => Store = (store) => store,
): Promise<void> => {
  const store = await open()
  let wanted: { call: StoreCall; when: (args: readonly unknown[]) => boolean } | null = null
  let armed = 0
  let lost = 0
  const wire = lossy(bug(keptOpen(store)), (call, args) => {
    if (wanted === null || wanted.call !== call || !wanted.when(args)) return 'pass'
    wanted = null
    lost++
    return fate
  })
  const client = await connect(wire, { logger: silentLogger, name: 'lossy' })
  const healthy = await connect(keptOpen(store), { logger: silentLogger, name: 'healthy' })
  const finish = async () => {
    await client.close()
    await healthy.close()
    await store.close()
  }
  try {
    await scene.play({
      client,
      healthy,
      lose: (call, when = () => true) => {
        wanted = { call, when }
        armed++
      },
    })
    expect(lost, 'the fault happened').toBe(armed)
    const { tasks } = await healthy.list({
      status: ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired', 'archived'],
    })
    expect(checkHistory({ tasks: await Promise.all(tasks.map(({ id }) => healthy.get(id))) })).toEqual([])
  } finally {
    await finish()
  }
}

for (const [name, open] of Object.entries(stores)) {
  describe(`[T02] a reply lost once after the write, on ${name}`, () => {
    for (const scene of scenes) it(scene.name, () => play(scene, 'lose-reply', open))
  })
}

describe('a request lost once before it arrived, on memory', () => {
  // A claim that never arrived leaves nothing to release; and after an outage a worker waits before it takes leases.
  const others = new Set(['claim by a worker', 'taking a lapsed lease'])
  for (const scene of scenes) {
    if (!others.has(scene.name)) it(scene.name, () => play(scene, 'drop-request', stores['memory']!))
  }
})

describe('the planted bug', () => {
  /** A store that forgets under which operation an entry was written. */
  const withoutOps = (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        if (name === 'get') {
          return async (ids: readonly string[]) =>
            (await target.get(ids)).map(
              (task) => task && { ...task, history: task.history.map((entry) => ({ ...entry, op: 'forgotten' })) },
            )
        }
        if (name === 'find') {
          return async (key: string) => {
            const found = await target.find(key)
            return found?.task ? { ...found, task: { ...found.task, history: [] } } : found
          }
        }
        if (name === 'insert') {
          return async (...args: Parameters<Store['insert']>) =>
            (await target.insert(...args)).map((inserted) =>
              inserted.outcome === 'created' || inserted.task === null
                ? inserted
                : { ...inserted, task: { ...inserted.task, history: [] } },
            )
        }
        return value.bind(target)
      },
    })

  it('turns every scene red that leans on the op in the history', async () => {
    const green: string[] = []
    for (const scene of scenes.filter(({ byOp }) => byOp)) {
      await play(scene, 'lose-reply', stores['memory']!, withoutOps).then(
        () => green.push(scene.name),
        () => {},
      )
    }
    expect(green).toEqual([])
  })
})
