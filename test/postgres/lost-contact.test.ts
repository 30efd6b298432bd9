/** Connections that are cut, that hang, or that lose the one reply that mattered. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type Client, connect, HoldfastError, isHoldfastError, silentLogger } from '../../src/index.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import type { Store } from '../../src/store/store.ts'
import { until } from '../crash/processes.ts'
import { report } from '../crash/seed.ts'
import { startProxy, type TcpProxy } from '../servers/tcp-proxy.ts'
import { begin, onPostgres, timed } from './setup.ts'

const proxyTo = async (url: string): Promise<TcpProxy> => {
  const proxy = await startProxy(url)
  onTestFinished(() => proxy.close())
  return proxy
}

/** Every request carries its text, so that the proxy knows it. */
const postgres = { prepare: false, queryTimeout: '2s', max: 2 } as const

onPostgres('a half-open connection', (url) => {
  const calls: Readonly<Record<string, (client: Client, id: string) => Promise<unknown>>> = {
    submit: (client) => client.submit('work', null),
    'keyed submit': (client) => client.submit('work', null, { idempotencyKey: 'k' }),
    claim: (client) => client.claimNext({ workerId: 'w' }),
    cancel: (client, id) => client.cancel(id),
    get: (client, id) => client.get(id),
    count: (client) => client.count(),
    pause: (client) => client.queue('default').pause(),
  }

  test('ends every call in a typed error within its deadline, and the client goes on when bytes flow again', async () => {
    const proxy = await proxyTo(url)
    const client = await begin(url).connect({ through: proxy.url, postgres: { ...postgres, queryTimeout: '500ms' } })
    const { id } = await client.submit('other', null)
    proxy.mode = 'blackhole'
    const ended = await Promise.all(
      Object.entries(calls).map(async ([name, call]) => {
        const begun = performance.now()
        const error: unknown = await call(client, id).then(
          () => null,
          (thrown: unknown) => thrown,
        )
        return { name, code: isHoldfastError(error) ? error.code : String(error), took: performance.now() - begun }
      }),
    )
    report(`half-open: ${ended.map(({ name, took }) => `${name} ${took.toFixed(0)} ms`).join(', ')}`)
    expect(ended.map(({ code }) => code)).toEqual(ended.map(() => 'STORE_UNAVAILABLE'))
    // Five tries, each with a deadline for a connection and one for the statement.
    for (const { took } of ended) expect(took).toBeLessThan(10_000)
    proxy.mode = 'pass'
    await until('contact is back', () =>
      client.submit('work', null).then(
        () => true,
        () => false,
      ),
    )
  })

  test('without deadlines would be noticed', async () => {
    const proxy = await proxyTo(url)
    const client = await begin(url).connect({ through: proxy.url, postgres: { ...postgres, queryTimeout: '1h' } })
    await client.submit('work', null)
    proxy.mode = 'blackhole'
    const call = client.submit('work', null).catch(() => {})
    expect(await Promise.race([call.then(() => 'ended'), pause(3_000, 'hangs')])).toBe('hangs')
    proxy.reset()
    proxy.mode = 'pass'
    await call
  })

  test('of a keeper is replaced before the lease is over', async () => {
    const { connect: open } = begin(url)
    const proxy = await proxyTo(url)
    const client = await open({ through: proxy.url, postgres: { ...postgres, queryTimeout: '10s' } })
    const { id } = await client.submit('work', null)
    let finish = (): void => {}
    const begun = new Promise<void>((started) => {
      const finished = new Promise<void>((done) => {
        finish = done
      })
      client
        .worker({ leaseTtl: '3s' })
        .handle('work', () => {
          started()
          return finished
        })
        .start()
    })
    await begun
    // The keeper renews every second: one round is lost in the hole, and its connection with it.
    proxy.mode = 'blackhole'
    await pause(1_200)
    proxy.mode = 'pass'
    await pause(2_500)
    const held = await (await open()).get(id)
    expect(held.lease!.expiresAt).toBeGreaterThan(await (await open()).now())
    finish()
    const done = await client.waitForEnd(id)
    expect(done.history.map(({ move }) => move)).toEqual(['submit', 'claim', 'complete'])
  })

  test('does not keep a client from closing', async () => {
    const proxy = await proxyTo(url)
    const client = await begin(url).connect({ through: proxy.url, postgres: { ...postgres, queryTimeout: '500ms' } })
    client
      .worker()
      .handle('work', () => null)
      .start()
    await client.wait(await client.submit('work', null))
    proxy.mode = 'blackhole'
    expect(await timed(client.close())).toBeLessThan(10_000)
  })
})

onPostgres('connections that are reset again and again', (url) => {
  test('cost no task, and no process', async () => {
    const proxy = await proxyTo(url)
    const { connect: open } = begin(url)
    const client = await open({ through: proxy.url })
    const worker = await open({ through: proxy.url })
    const runs = new Map<string, number>()
    worker
      .worker({ concurrency: 5, leaseTtl: '2s', pollInterval: '200ms' })
      .handle('work', async (_, { task }) => {
        runs.set(task.id, (runs.get(task.id) ?? 0) + 1)
        await pause(5)
      })
      .start()
    const ids: string[] = []
    let cuts = 0
    let isOver = false
    const cutting = (async () => {
      while (!isOver) {
        await pause(100)
        cuts += proxy.reset()
      }
    })()
    while (cuts < 100) {
      const task = await client.submit('work', null, { maxRetries: null }).catch(() => null)
      if (task !== null) ids.push(task.id)
    }
    isOver = true
    await cutting
    for (const id of ids) expect((await client.waitForEnd(id, { timeout: '30s' })).status).toBe('completed')
    const { count } = await client.count()
    report(`resets: ${cuts} connections cut, ${ids.length} tasks acknowledged, ${count} stored, all completed`)
    expect(count).toBeGreaterThanOrEqual(ids.length)
  })
})

/** A lost reply to the request that matches, during `call`. */
const losing = async <T>(proxy: TcpProxy, request: RegExp, call: () => Promise<T>): Promise<T> => {
  const lost = proxy.loseReplyTo(request)
  const result = await call()
  await lost
  return result
}

/** The planted bug: tries again with a new id when it was not told. */
const blindlyAgain = (store: Store): Store =>
  withMethod(store, 'insert', async (insertions, options) => {
    try {
      return await store.insert(insertions, options)
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
      const renamed = insertions.map(({ task }) => ({ task: { ...task, id: crypto.randomUUID() } }))
      return store.insert(renamed, options)
    }
  })

/** The planted bug: no task tells what was done to it. */
const withoutHistory = (store: Store): Store =>
  withMethod(store, 'get', async (ids) =>
    (await store.get(ids)).map((task) => (task === null ? null : { ...task, history: [] })),
  )

/** The planted bug: nobody looks for what he may hold. */
const carefree = (store: Store): Store => withMethod(store, 'list', async () => ({ tasks: [], stoppedAt: null }))

const withMethod = <Name extends keyof Store>(store: Store, name: Name, method: Store[Name]): Store =>
  new Proxy(store, {
    get(target, wanted) {
      if (wanted === name) return method
      const value: unknown = Reflect.get(target, wanted, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

onPostgres('a reply that is lost after the commit', (url) => {
  /** A client whose requests go through the proxy, with a bug perhaps, and one that sees everything. */
  const start = async (plant: (store: Store) => Store = (store) => store) => {
    const proxy = await proxyTo(url)
    const { schema, connect: open } = begin(url)
    const honest = await open()
    const store = await openPostgres(proxy.url, { ...postgres, schema, listen: false })
    const client = await connect(plant(store), { logger: silentLogger })
    onTestFinished(() => client.close())
    return { proxy, client, honest }
  }

  const submits = async (plant?: (store: Store) => Store): Promise<number> => {
    const { proxy, client, honest } = await start(plant)
    for (let i = 0; i < 10; i++) await losing(proxy, /insert into \S+\.task/, () => client.submit('work', i))
    return (await honest.count()).count
  }

  test('of a submit: the task is there once, and the caller was told so', async () => {
    expect(await submits()).toBe(10)
  })

  test('of a submit that is tried again under another id would be noticed', async () => {
    expect(await submits(blindlyAgain)).toBe(20)
  })

  const keyedSubmits = async (plant?: (store: Store) => Store): Promise<unknown> => {
    const { proxy, client, honest } = await start(plant)
    const told = new Set<string>()
    for (let i = 0; i < 10; i++) {
      const submit = () => client.submit('work', i, { idempotencyKey: `k${i}` })
      const [first, again] = [await losing(proxy, /commit/, submit), await submit()]
      if (!first.deduplicated) told.add(first.id)
      if (again.deduplicated) told.add(again.id)
    }
    return { stored: (await honest.count()).count, told: told.size }
  }

  test('of a keyed submit: the task is there once, is told as new, and the key finds it', async () => {
    expect(await keyedSubmits()).toEqual({ stored: 10, told: 10 })
  })

  test('of a keyed submit that is tried again without its key would be noticed', async () => {
    expect(await keyedSubmits(blindlyAgain)).not.toEqual({ stored: 10, told: 10 })
  })

  const claims = async (plant?: (store: Store) => Store): Promise<Record<string, number>> => {
    const { proxy, client, honest } = await start(plant)
    const ids = (await honest.submitMany(Array.from({ length: 5 }, () => ({ type: 'work', input: null })))).flatMap(
      (result) => (result.ok ? [result.task.id] : []),
    )
    const runs: string[] = []
    const lost = proxy.loseReplyTo(/\.claim_in_order\(/)
    client
      .worker({ leaseTtl: '2s', pollInterval: '100ms' })
      .handle('work', (_, { task }) => void runs.push(task.id))
      .start()
    await lost
    const moves: Record<string, number> = { runs: 0 }
    for (const id of ids)
      for (const { move } of (await honest.waitForEnd(id, { timeout: '20s' })).history)
        moves[move] = (moves[move] ?? 0) + 1
    return { ...moves, runs: runs.length }
  }

  test('of a claim: what was leased is given back at once, and runs once', async () => {
    const { runs, complete, release, 'lose-lease': taken = 0 } = await claims()
    expect({ runs, complete, taken }).toEqual({ runs: 5, complete: 5, taken: 0 })
    expect(release).toBeGreaterThan(0)
  })

  test('of a claim that nobody looks for would be noticed: its leases lapse', async () => {
    expect((await claims(carefree))['lose-lease']).toBeGreaterThan(0)
  })

  const completions = async (plant?: (store: Store) => Store): Promise<unknown> => {
    const { proxy, client, honest } = await start(plant)
    const { id } = await honest.submit('work', null)
    const lease = await client.claim(id, { workerId: 'w' })
    const code = await losing(proxy, /update .*task t set/, () =>
      lease.complete('done').then(
        () => 'told',
        (error: HoldfastError) => error.code,
      ),
    )
    const { status, history } = await honest.get(id)
    return { code, status, moves: history.map(({ move }) => move) }
  }

  test('of a completion: it is written once, and the caller was told so', async () => {
    expect(await completions()).toEqual({ code: 'told', status: 'completed', moves: ['submit', 'claim', 'complete'] })
  })

  test('of a completion whose traces are not read would be noticed', async () => {
    expect(await completions(withoutHistory)).not.toMatchObject({ code: 'told' })
  })

  const cancels = async (plant?: (store: Store) => Store): Promise<unknown> => {
    const { proxy, client, honest } = await start(plant)
    const { id } = await honest.submit('work', null)
    await client.claim(id, { workerId: 'w' })
    await losing(proxy, /update .*task t set/, () => client.cancel(id))
    const { status, history } = await honest.get(id)
    return { status, moves: history.map(({ move }) => move) }
  }

  test('of a cancel: it is asked for once', async () => {
    expect(await cancels()).toEqual({ status: 'running', moves: ['submit', 'claim', 'request-cancel'] })
  })
})
