/** What most runtime tests begin with: a memory store, a clock that stands still, a client, and an end that leaves nothing. */
import { expect, onTestFinished } from 'vitest'
import { type Client, type Code, type ConnectOptions, connect, silentLogger, type Task } from '../../src/index.ts'
import { openMemory } from '../../src/store/memory/store.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'

export interface Bench {
  readonly clock: FakeClock
  readonly store: Store
  readonly client: Client
  /** Another client of the same store: another process, as far as the store can tell. */
  readonly another: (
    options?: ConnectOptions & { readonly through?: (store: Store) => Store; readonly vanishes?: boolean },
  ) => Promise<Client>
  /** Lets time pass until the promise is settled. */
  readonly passing: <T>(promise: Promise<T>, step?: number) => Promise<T>
}

/** `through` puts something between client and store. */
export const begin = async ({
  through = (store) => store,
  ...options
}: ConnectOptions & { readonly through?: (store: Store) => Store } = {}): Promise<Bench> => {
  const clock = new FakeClock()
  const store = openMemory({ wall: () => clock.wall() })
  const clients: Client[] = []
  const another: Bench['another'] = async ({
    through: wrap = (one: Store): Store => one,
    vanishes = false,
    ...more
  } = {}) => {
    const client = await connect(wrap(keptOpen(store)), {
      clock,
      random: clock.random,
      logger: silentLogger,
      name: 'test',
      ...more,
    })
    if (!vanishes) clients.push(client)
    return client
  }
  onTestFinished(async () => {
    for (const client of clients) await passing(clock, client.close(), 500)
    await store.close()
  })
  return {
    clock,
    store,
    client: await another({ through, ...options }),
    another,
    passing: (promise, step) => passing(clock, promise, step),
  }
}

/** Several clients share the store, so none of them closes it. */
export const keptOpen = (store: Store): Store =>
  new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

const LONGEST = 3_600_000

export const passing = async <T>(clock: FakeClock, promise: Promise<T>, step = 50): Promise<T> => {
  let settled = false
  const seen = promise.finally(() => (settled = true))
  seen.catch(() => {})
  for (let passed = 0; !settled; passed += step) {
    if (passed > LONGEST) throw new Error('an hour passed and the promise is not settled')
    await clock.settle()
    if (!settled) await clock.advance(step)
  }
  return seen
}

/** A handler's end in the test's hands. */
export const gate = <T = void>(): { readonly opened: Promise<T>; open(value: T): void; fail(error: unknown): void } => {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  promise.catch(() => {})
  return { opened: promise, open: resolve, fail: reject }
}

/** Rejects with a HoldfastError of this code. */
export const refuses =
  (code: Code, message?: RegExp | string): ((promise: Promise<unknown>) => Promise<void>) =>
  async (promise) => {
    await expect(promise).rejects.toMatchObject({ name: 'HoldfastError', code })
    if (message !== undefined) await expect(promise).rejects.toThrow(message)
  }

/** A task's fields as a plain object: what a failed expectation can print. */
export const shown = (task: Task): Record<string, unknown> => ({ ...task })

export const movesOf = (task: Task): string[] => task.history.map(({ move, to }) => `${move} → ${to}`)
