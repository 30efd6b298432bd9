/**
 * Signals on every store, sent at any instant of the life of their task, some with the reply lost: each is taken exactly once by a wait.
 * HOLDFAST_VOLUME=full: 10,000 of them on SQLite and PostgreSQL, 500 on S3 and NATS.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Change } from '../src/core/task.ts'
import { connect, type Duration, silentLogger, type TaskContext } from '../src/index.ts'
import type { Store } from '../src/store/store.ts'
import { lossy } from '../src/testing/lossy-store.ts'
import { Random } from '../src/testing/random.ts'
import { keptOpen } from './runtime/setup.ts'
import { stores } from './stores.ts'
import { volume } from './volume.ts'

const FAST = volume(400, 10_000)
const SLOW = volume(100, 500)
const EACH = 5
const AT_ONCE = 20
const LIMIT = volume(180_000, 1_800_000)

interface Outcome {
  readonly violations: readonly string[]
  readonly signals: number
  readonly parks: number
  readonly lost: number
}

/** Waits for five signals of one name, in five steps. */
const waits = async (_: unknown, ctx: TaskContext): Promise<unknown[]> => {
  const got: unknown[] = []
  for (let i = 0; i < EACH; i++) got.push(await ctx.waitFor(`wait ${i}`, { signal: 'go' }))
  return got
}

/** `latest`: of the pauses before a signal, where claims take long. */
const race = async (
  store: Store,
  signals: number,
  seed: number,
  latest = 0,
  patience: Duration = '60s',
): Promise<Outcome> => {
  const random = new Random(seed)
  let lost = 0
  const wire = (one: Store): Store =>
    lossy(keptOpen(one), (call) => {
      if (call !== 'commit' || random.next() > 0.05) return 'pass'
      lost++
      return random.pick(['lose-reply', 'drop-request'])
    })
  const options = { logger: silentLogger, random: () => random.next() }
  const [sender, server] = [await connect(wire(store), options), await connect(wire(store), options)]
  const violations: string[] = []
  let parks = 0
  const one = async (n: number): Promise<void> => {
    const { id } = await sender.submit('waiter', n)
    const values = Array.from({ length: EACH }, (_, i) => `${n}.${i}`)
    await Promise.all(
      values.map(async (value) => {
        // Before the first claim, while the handler runs, while the park is on its way, and long after it.
        await pause(random.pick([0, 0, 1, 2, 5, 10, 20, 100, 400, latest]))
        await sender.signal(id, 'go', value).catch((error: Error) => {
          violations.push(`task ${n} refused ${value}: ${error.message}`)
        })
      }),
    )
    const task = await sender.waitForEnd(id, { timeout: patience }).catch(() => sender.get(id))
    parks += task.history.filter(({ move }) => move === 'park').length
    const taken = (task.output ?? task.steps.map(({ value }) => value)) as string[]
    const left = task.signals.map(({ value }) => value)
    if (task.status !== 'completed') violations.push(`task ${n} is ${task.status}, with ${taken.length} taken`)
    if (taken.toSorted().join() !== values.join()) violations.push(`task ${n} took ${taken.join()}`)
    if (left.length > 0) violations.push(`task ${n} has ${left.join()} left`)
  }
  const worker = server.worker({ concurrency: AT_ONCE, pollInterval: '50ms' }).handle('waiter', waits).start()
  try {
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < signals / EACH && violations.length < 10) await one(next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  } finally {
    await worker.stop({ timeout: '1s' })
    await server.close()
    await sender.close()
  }
  return { violations, signals, parks, lost }
}

for (const { name, kind, open } of stores) {
  const count = kind === 's3' || kind === 'nats' ? SLOW : FAST
  describe(`${name}, signals`, () => {
    if (typeof open === 'string') {
      it(`race`, (context) => context.skip(`${name} could not be started: ${open}`))
      return
    }
    it(`${count} at any instant are each taken exactly once`, { timeout: LIMIT }, async () => {
      const store = await open()
      try {
        const { violations, ...counts } = await race(store, count, 20, kind === 's3' ? 6_000 : 0)
        process.stdout.write(`signals, ${name}: ${JSON.stringify(counts)}\n`)
        expect(violations).toEqual([])
        expect(counts.lost, 'replies were lost').toBeGreaterThan(0)
        // On a slow store most signals come before their wait, which is the other half of the promise.
        expect(counts.parks, 'tasks were parked').toBeGreaterThan(count === SLOW ? 0 : count / EACH / 10)
      } finally {
        await store.close()
      }
    })
  })
}

/** A store with a bug in how it commits. */
const commitsWith = (store: Store, commit: (store: Store, changes: readonly Change[]) => ReturnType<Store['commit']>) =>
  new Proxy(store, {
    get(target, name) {
      if (name === 'commit') return (changes: readonly Change[]) => commit(target, changes)
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

/** Parks over whatever was written meanwhile, which is much: a park is long on its way. */
const parksBlindly = (store: Store): Store =>
  commitsWith(store, async (inner, changes) =>
    Promise.all(
      changes.map(async (change) => {
        if (change.entry.move === 'park') await pause(10)
        const [fresh] = await inner.get([change.id])
        const isPark = change.entry.move === 'park' && fresh?.status === 'running'
        const { mark: _, ...rest } = change
        const [result] = await inner.commit([isPark ? { ...rest, revision: fresh.revision, journal: [] } : change])
        return result!
      }),
    ),
  )

let nonces = 0

/** Keeps a signal under another id than the one that was sent. */
const forgetsIds = (store: Store): Store =>
  commitsWith(store, (inner, changes) =>
    inner.commit(
      changes.map((change) =>
        change.entry.move === 'signal'
          ? { ...change, journal: change.journal!.map((entry) => ({ ...entry, signalId: `other ${++nonces}` })) }
          : change,
      ),
    ),
  )

const local = stores.find(({ name }) => name === 'memory')
describe.runIf(local !== undefined)('a planted bug turns the race red', () => {
  it.each([
    ['a park that overwrites a signal', parksBlindly],
    ['a signal that is not recognised when it is sent again', forgetsIds],
  ])('%s', { timeout: 120_000 }, async (_, planted) => {
    const store = await (local!.open as () => Promise<Store>)()
    const { violations } = await race(planted(store), 500, 21, 0, '2s')
    expect(violations.length).toBeGreaterThan(0)
    await store.close()
  })
})
