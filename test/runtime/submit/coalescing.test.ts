/** One task for many triggers of a key, for as long as it waits. */
import { describe, expect, it } from 'vitest'
import { connect, defineTask, HoldfastError, silentLogger } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { lossy, onceFor, type StoreCall } from '../../../src/testing/lossy-store.ts'
import { begin, movesOf, refuses, shown } from '../setup.ts'

const key = 'doc-7'
const coalesce = { key }
const ALL = ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired', 'archived'] as const

/** Something happens before or after the first such call, whose reply may be lost. */
const around =
  (
    call: 'commit' | 'insert',
    {
      before,
      after,
      isLost = false,
    }: { before?: () => Promise<unknown>; after?: () => Promise<unknown>; isLost?: boolean },
  ) =>
  (store: Store): Store => {
    let calls = 0
    return new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        const bound = value.bind(target)
        if (name !== call) return bound
        return async (...args: unknown[]) => {
          const isFirst = calls++ === 0
          if (isFirst) await before?.()
          const reply = await bound(...args)
          if (isFirst) await after?.()
          if (isFirst && isLost) throw new HoldfastError('STORE_UNAVAILABLE', 'the reply was lost')
          return reply
        }
      },
    })
  }

describe('coalesce', () => {
  it('joins the task that waits, with the latest input', async () => {
    const { client } = await begin()
    const first = await client.submit('index', { v: 1 }, { coalesce })
    expect([first.coalesced, first.deduplicated, first.idempotencyKey]).toEqual([false, false, 'coalesce:index#doc-7'])
    const second = await client.submit('index', { v: 2 }, { coalesce })
    expect(shown(second)).toMatchObject({ id: first.id, coalesced: true, deduplicated: false, input: { v: 2 } })
    expect([second.toJSON()['coalesced'], first.toJSON()['coalesced']]).toEqual([true, undefined])
    expect(movesOf(await client.get(first.id))).toEqual(['submit → pending', 'amend → pending'])
    expect((await client.submit('index', { v: 2 }, { coalesce })).revision, 'nothing to write').toBe(2)
  })

  it('keeps the first input where that is wanted', async () => {
    const { client } = await begin()
    const wish = { coalesce: { key, input: 'first' } } as const
    const { id } = await client.submit('index', { v: 1 }, wish)
    expect(shown(await client.submit('index', { v: 2 }, wish))).toMatchObject({ id, coalesced: true, input: { v: 1 } })
  })

  it('is a namespace of its own for each type, and apart from idempotency keys', async () => {
    const { client } = await begin()
    const ids = [
      await client.submit('index', {}, { coalesce }),
      await client.submit('report', {}, { coalesce }),
      await client.submit('index', {}, { coalesce: { key: 'doc-8' } }),
      await client.submit('index', {}, { idempotencyKey: key }),
    ].map(({ id }) => id)
    expect(new Set(ids).size).toBe(4)
    await refuses('INVALID_OPTION', /begin with/)(client.submit('t', 1, { idempotencyKey: 'coalesce:index#doc-7' }))
  })

  it('a key as long as allowed works with the longest type', async () => {
    const { client } = await begin()
    const long = { coalesce: { key: 'ü'.repeat(512) } }
    const { id, idempotencyKey } = await client.submit('t'.repeat(128), {}, long)
    expect(idempotencyKey!.length).toBeLessThanOrEqual(512)
    expect((await client.submit('t'.repeat(128), {}, long)).id).toBe(id)
  })

  it('a trigger while the task runs makes a new one, and the next trigger joins that', async () => {
    const { client } = await begin()
    const first = await client.submit('index', 1, { coalesce })
    const lease = await client.claim(first.id, { workerId: 'w' })
    const second = await client.submit('index', 2, { coalesce })
    expect([second.coalesced, second.id === first.id]).toEqual([false, false])
    expect(shown(await client.submit('index', 3, { coalesce }))).toMatchObject({ id: second.id, coalesced: true })
    await lease.complete()
    expect((await client.submit('index', 4, { coalesce })).id, 'the end of the first changes nothing').toBe(second.id)
  })

  it('a trigger after the task has ended, in whichever way, makes a new one', async () => {
    const { client } = await begin()
    const seen = new Set<string>()
    const next = async () => {
      const { id, coalesced } = await client.submit('index', {}, { coalesce })
      expect([coalesced, seen.has(id)]).toEqual([false, false])
      seen.add(id)
      return id
    }
    await (await client.claim(await next(), { workerId: 'w' })).complete()
    await client.cancel(await next())
    await client.markExpired(await next())
    await client.archive((await client.cancel(await next())).id)
    await client.delete((await client.cancel(await next())).id)
    await next()
  })

  it('a task that was claimed and given back is not joined: its handler may have begun', async () => {
    const { client } = await begin()
    const { id } = await client.submit('index', {}, { coalesce })
    await (await client.claim(id, { workerId: 'w' })).release()
    const second = await client.submit('index', {}, { coalesce })
    expect([second.coalesced, second.id === id]).toEqual([false, false])
  })

  it('a task past its expiry is expired and not joined; a trigger in time gives it its own time', async () => {
    const { client, clock } = await begin()
    const wish = { coalesce, ttl: '10s' } as const
    const { id } = await client.submit('index', {}, wish)
    await clock.advance(6_000)
    const joined = await client.submit('index', {}, wish)
    expect([joined.id, joined.expiresAt]).toEqual([id, clock.wall() + 10_000])
    await clock.advance(10_000)
    const next = await client.submit('index', {}, wish)
    expect([next.coalesced, next.id === id]).toEqual([false, false])
    expect((await client.get(id)).status).toBe('expired')
  })

  it('delete and prune of an older task leave the key to the newer one', async () => {
    const { client } = await begin()
    const ended = async () => {
      const { id } = await client.submit('index', {}, { coalesce })
      await (await client.claim(id, { workerId: 'w' })).complete()
      return id
    }
    const [deleted] = [await ended(), await ended()]
    const { id } = await client.submit('index', {}, { coalesce })
    await client.delete(deleted)
    expect(await client.prune({ olderThan: 0 })).toBe(1)
    expect((await client.submit('index', {}, { coalesce })).id).toBe(id)
    expect((await client.getByIdempotencyKey('coalesce:index#doc-7')).id).toBe(id)
  })

  it('a key whose task was pruned blocks nobody', async () => {
    const { client } = await begin()
    const { id } = await client.submit('index', {}, { coalesce })
    await (await client.claim(id, { workerId: 'w' })).complete()
    expect(await client.prune({ olderThan: 0 })).toBe(1)
    expect(shown(await client.submit('index', {}, { coalesce }))).toMatchObject({ coalesced: false, status: 'pending' })
  })
})

describe('debounce', () => {
  it('runs a delay after the last trigger, and maxWait after the first at the latest', async () => {
    const { client, clock } = await begin()
    const runs: [at: number, input: unknown][] = []
    const begun = clock.wall()
    client
      .worker()
      .handle('index', (input) => void runs.push([clock.wall() - begun, input]))
      .start()
    const trigger = (n: number) => client.submit('index', n, { coalesce: { key, delay: '5s', maxWait: '12s' } })
    await trigger(1)
    await clock.advance(4_000)
    await trigger(2)
    await clock.advance(4_999)
    expect(runs).toEqual([])
    await clock.advance(1)
    expect(runs).toEqual([[9_000, 2]])
    for (let n = 3; n < 9; n++) {
      await trigger(n)
      await clock.advance(3_000)
    }
    expect(runs, 'triggers at 9, 12, 15, 18, 21 and 24 s').toEqual([
      [9_000, 2],
      [21_000, 6],
    ])
    await clock.advance(10_000)
    expect(runs.slice(2)).toEqual([[29_000, 8]])
  })
})

describe('what coalesce excludes', () => {
  it('other identities and times, tx, defaults and schedules', async () => {
    const { client } = await begin()
    const refused = refuses('INVALID_OPTION')
    for (const options of [{ idempotencyKey: 'x' }, { onMismatch: 'existing' }, { delay: '1s' }] as const)
      await refused(client.submit('index', {}, { ...options, coalesce }))
    await refuses(
      'INVALID_OPTION',
      /tx cannot be used with coalesce/,
    )(client.submit('index', {}, { coalesce, tx: { query: async () => ({ rows: [] }) } }))
    expect(() => defineTask('index', { coalesce } as never)).toThrow(/coalesce is not an option of defineTask/)
    await refused(connect('memory:', { defaults: { coalesce } as never, logger: silentLogger }))
    await refuses(
      'INVALID_OPTION',
      /options\.coalesce belongs to one task/,
    )(client.schedules.create({ id: 's', type: 'index', input: {}, every: '1h', options: { coalesce } as never }))
    await refuses(
      'INVALID_OPTION',
      /coalesce belongs to one task: give it on the item/,
    )(client.submitMany([{ type: 'index', input: {} }], { coalesce }))
    expect((await client.count({ status: [...ALL] })).count).toBe(0)
  })

  it('defaults of a definition that do not go with it give way', async () => {
    const { client, clock } = await begin()
    const index = defineTask('index', { delay: '1h', idempotencyTtl: '2h', onMismatch: 'existing', priority: 4 })
    expect(shown(await client.submit(index, {}, { coalesce }))).toMatchObject({
      availableAt: clock.wall(),
      priority: 4,
    })
  })

  it('undefined is no coalesce', async () => {
    const { client } = await begin()
    const submitted = await client.submit('index', {}, { coalesce: undefined } as never)
    expect(submitted.idempotencyKey).toBeNull()
  })
})

it('in submitMany each item is a trigger, in the order of the list, beside others', async () => {
  const { client } = await begin()
  const results = await client.submitMany([
    { type: 'index', input: 1, coalesce },
    { type: 'plain', input: 'p' },
    { type: 'index', input: 2, coalesce },
    { type: 'index', input: 3, coalesce: { key: '' } },
    { type: 'index', input: 4, coalesce: { key: 'doc-8' } },
    { type: 'index', input: 5, coalesce },
  ])
  expect(results.map((result) => (result.ok ? result.task.coalesced : result.error.code))).toEqual([
    false,
    false,
    true,
    'INVALID_OPTION',
    false,
    true,
  ])
  const { tasks } = await client.list()
  expect(tasks.map(({ input }) => input).sort()).toEqual([4, 5, 'p'])
})

describe('a reply that is lost', () => {
  const fates = ['lose-reply', 'drop-request'] as const
  const cases: readonly [name: string, call: StoreCall, before: number][] = [
    ['of the insert', 'insert', 0],
    ['of the insert that takes the key from an ended task', 'insert', 1],
    ['of the change of the task that waits', 'commit', 2],
    ['of the look at the key', 'find', 2],
  ]
  for (const [name, call, before] of cases) {
    for (const fate of fates) {
      it(`${name} (${fate}) leaves one task that waits, changed once`, async () => {
        const { client, another, passing } = await begin()
        if (before > 0) {
          const { id } = await client.submit('index', 0, { coalesce })
          if (before === 1) await (await client.claim(id, { workerId: 'w' })).complete()
        }
        const plan = onceFor(call, fate)
        const cut = await another({ through: (store) => lossy(store, plan) })
        const task = await passing(cut.submit('index', 1, { coalesce }))
        expect(plan.hits).toBe(1)
        expect([task.input, task.coalesced]).toEqual([1, before === 2])
        const { tasks } = await client.list({ status: 'pending' })
        expect(tasks.map(({ id, input }) => [id, input])).toEqual([[task.id, 1]])
        expect((await client.history(task.id)).filter(({ move }) => move === 'amend')).toHaveLength(
          before === 2 ? 1 : 0,
        )
      })
    }
  }

  it('of a change is recognised although the task has been claimed since', async () => {
    const { client, another, passing } = await begin()
    const { id } = await client.submit('index', 0, { coalesce })
    const claimed = () => client.claim(id, { workerId: 'w' })
    const cut = await another({ through: around('commit', { after: claimed, isLost: true }) })
    const task = await passing(cut.submit('index', 1, { coalesce }))
    expect([task.id, task.coalesced, task.status]).toEqual([id, true, 'running'])
    expect((await client.count({ status: [...ALL] })).count, 'its run began after the trigger').toBe(1)
  })

  it('of an insert is recognised although its task has ended and another has the key', async () => {
    const { client, another, passing } = await begin()
    const overtaken = async () => {
      await (await client.claimNext({ workerId: 'w' }))!.complete()
      const { id } = await client.submit('index', 2, { coalesce })
      await client.claim(id, { workerId: 'w' })
    }
    const cut = await another({ through: around('insert', { after: overtaken, isLost: true }) })
    const task = await passing(cut.submit('index', 1, { coalesce }))
    expect([task.input, task.status, task.coalesced]).toEqual([1, 'completed', false])
    expect((await client.count({ status: [...ALL] })).count).toBe(2)
  })

  it('every time is a success all the same: the task is found under its key', async () => {
    const { client, another, passing } = await begin()
    const cut = await another({
      through: (store) => lossy(store, (call) => (call === 'insert' ? 'lose-reply' : 'pass')),
    })
    const { id, coalesced } = await passing(cut.submit('index', 1, { coalesce }))
    expect([coalesced, (await client.list()).tasks.map((task) => task.id)]).toEqual([false, [id]])
  })

  it('a store that is not reached is an error that says what to do', async () => {
    const { another, passing } = await begin()
    const cut = await another({
      through: (store) => lossy(store, (call) => (call === 'insert' ? 'drop-request' : 'pass')),
    })
    await passing(refuses('STORE_UNAVAILABLE', /coalesce key/)(cut.submit('index', 1, { coalesce })))
  })
})

it('a claim between the look and the change makes a new task', async () => {
  const { client, another } = await begin()
  const { id } = await client.submit('index', 0, { coalesce })
  const claimed = () => client.claim(id, { workerId: 'w' })
  const late = await another({ through: around('commit', { before: claimed }) })
  const task = await late.submit('index', 1, { coalesce })
  expect([task.coalesced, task.id === id]).toEqual([false, false])
  expect((await client.get(id)).input, 'what runs is left alone').toBe(0)
})
