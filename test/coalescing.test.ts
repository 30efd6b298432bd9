/** Coalescing on every store: races of triggers with each other and with workers. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type Client, connect, defineTask, silentLogger } from '../src/index.ts'
import type { Store } from '../src/store/store.ts'
import { keptOpen } from './runtime/setup.ts'
import { stores } from './stores.ts'
import { volume } from './volume.ts'

const SLOW = 120_000

const index = defineTask<{ readonly doc: number; readonly n?: number }>('index')

/** The same store, with calls that take some turns of the event loop: others get in between. */
const unhurried = (store: Store): Store => {
  const calls: ReadonlySet<PropertyKey> = new Set(['find', 'commit', 'insert', 'claim'])
  let seed = 1
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      const bound = value.bind(target)
      if (!calls.has(name)) return bound
      return async (...args: unknown[]) => {
        seed = (seed * 48_271) % 2_147_483_647
        for (let turns = seed % 4; turns > 0; turns--) await nextTurn()
        return bound(...args)
      }
    },
  })
}

const withClients = async (
  open: () => Promise<Store>,
  count: number,
  work: (clients: readonly Client[], store: Store) => Promise<void>,
): Promise<void> => {
  const store = await open()
  const clients = await Promise.all(
    Array.from({ length: count }, () => connect(keptOpen(unhurried(store)), { logger: silentLogger })),
  )
  try {
    await work(clients, store)
  } finally {
    for (const client of clients) await client.close()
    await store.close()
  }
}

/** Tasks of each key that wait and were never claimed. */
const neverClaimed = async (client: Client): Promise<Map<string, number>> => {
  const counts = new Map<string, number>()
  let cursor: string | null | undefined
  do {
    const page = await client.list({ status: 'pending', limit: 500, ...(cursor ? { cursor } : null) })
    for (const { idempotencyKey, attempts } of page.tasks)
      if (attempts === 0) counts.set(idempotencyKey!, (counts.get(idempotencyKey!) ?? 0) + 1)
    cursor = page.cursor
  } while (cursor)
  return counts
}

for (const { name, kind, open } of stores) {
  describe(`coalesce on ${name}`, () => {
    if (typeof open === 'string') {
      it('is tried', (context) => context.skip(`${name} could not be started: ${open}`))
      return
    }

    it('eight triggers at once leave one task that was never claimed', { timeout: SLOW }, () =>
      withClients(open, 8, async (clients) => {
        for (let round = 0; round < 10; round++) {
          const coalesce = { key: `doc-${round}` }
          const tasks = await Promise.all(clients.map((client, i) => client.submit('index', i, { coalesce })))
          expect(new Set(tasks.map(({ id }) => id)).size).toBe(1)
          expect(tasks.filter(({ coalesced }) => !coalesced)).toHaveLength(1)
        }
        expect([...(await neverClaimed(clients[0]!)).values()]).toEqual(Array(10).fill(1))
      }),
    )

    it(
      'eight triggers at once while the task of their key runs leave one task that was never claimed',
      { timeout: SLOW },
      () =>
        withClients(open, 8, async (clients) => {
          for (let round = 0; round < 10; round++) {
            const coalesce = { key: `doc-${round}` }
            const running = await clients[0]!.submit('index', 'old', { coalesce })
            await clients[1]!.claim(running.id, { workerId: 'w' })
            const tasks = await Promise.all(clients.map((client, i) => client.submit('index', i, { coalesce })))
            expect(new Set(tasks.map(({ id }) => id)).size).toBe(1)
            expect(tasks[0]!.id).not.toBe(running.id)
            expect(tasks.filter(({ coalesced }) => !coalesced)).toHaveLength(1)
          }
          expect([...(await neverClaimed(clients[0]!)).values()]).toEqual(Array(10).fill(1))
        }),
    )

    for (const [what, isChanging] of [
      ['triggers that change its input', true],
      ['triggers that change nothing', false],
    ] as const) {
      it(`after the last of many ${what} a run begins, whatever ran meanwhile`, { timeout: SLOW }, () =>
        withClients(open, 3, async ([worker, ...triggers]) => {
          const keys = kind === 'embedded' ? 20 : 10
          /** How often each key was triggered, and what its last run saw of that when it began. */
          const state = Array.from({ length: keys }, () => 0)
          const seen = Array.from({ length: keys }, () => -1)
          const last = Array.from({ length: keys }, () => -1)
          let runs = 0
          const running = worker!
            .worker({ concurrency: 4, pollInterval: '100ms' })
            .handle(index, ({ doc, n = -1 }) => {
              runs++
              last[doc] = n
              seen[doc] = state[doc]!
            })
            .start()
          let most = 0
          const trigger = async (doc: number, client: Client): Promise<void> => {
            const n = ++state[doc]!
            const input = isChanging ? { doc, n } : { doc }
            await client.submit(index, input, { coalesce: { key: `doc-${doc}` } })
          }
          const waves = volume(12, 40)
          for (let wave = 0; wave < waves; wave++) {
            // All keys from one client, all keys from the other: of each key it is clear which trigger is the latest.
            const each = kind === 'embedded' ? 2 : 1
            for (let i = 0; i < each; i++)
              await Promise.all(state.map((_, doc) => trigger(doc, triggers[(i + wave) % triggers.length]!)))
            await Promise.all(state.flatMap((_, doc) => triggers.map((client) => trigger(doc, client))))
            most = Math.max(most, ...(await neverClaimed(worker!)).values())
          }
          await Promise.all(state.map((_, doc) => trigger(doc, triggers[0]!)))
          const left = async () => (await worker!.count({ status: ['pending', 'running'] })).count
          await expect.poll(left, { timeout: SLOW }).toBe(0)
          await running.stop()
          expect(seen, 'no trigger is lost').toEqual(state)
          if (isChanging) expect(last, 'the latest input').toEqual(state)
          expect(most, 'never-claimed tasks of one key').toBeLessThanOrEqual(1)
          expect(runs).toBeGreaterThanOrEqual(keys)
        }),
      )
    }
  })
}
