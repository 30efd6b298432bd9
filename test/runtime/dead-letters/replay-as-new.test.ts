/** A dead letter replayed as a new task: linked both ways, and the same task however often it is asked for. */
import { describe, expect, it } from 'vitest'
import type { Client } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { checkHistory } from '../../../src/testing/check-history.ts'
import { type Fate, lossy } from '../../../src/testing/lossy-store.ts'
import { begin, passing, shown } from '../setup.ts'

const die = async (client: Client, input: unknown = { n: 1 }): Promise<string> => {
  const { id } = await client.submit('work', input, {
    maxRetries: 0,
    priority: 7,
    queue: 'mail',
    timeout: '1m',
    tags: { team: 'blue' },
    idempotencyKey: `key of ${JSON.stringify(input)}`,
  })
  await (await client.claim(id, { workerId: 'w' })).fail(new Error('boom'))
  return id
}

/** Exactly one new task for each dead one, each linked to the other, and nothing in the history that could not be. */
const expectReplaced = async (client: Client, ids: readonly string[]): Promise<void> => {
  const every = ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired', 'archived']
  const tasks = (await client.list({ status: every, limit: 1_000 })).tasks
  expect(tasks).toHaveLength(2 * ids.length)
  for (const id of ids) {
    const old = await client.get(id)
    const [replacement, ...others] = tasks.filter(({ replayOf }) => replayOf === id)
    expect(others).toEqual([])
    expect(shown(old)).toMatchObject({
      status: 'archived',
      archivedFrom: 'failed',
      replayedAs: replacement!.id,
      replayCount: 1,
    })
    expect(replacement!.idempotencyKey).toBe(`replay:${id}:1`)
  }
  expect(checkHistory({ tasks: await Promise.all(tasks.map(({ id }) => client.get(id))) })).toEqual([])
}

describe('replay as new', () => {
  it('[L02] makes the same work anew under a key of its own, and archives the old one', async () => {
    const { client, clock } = await begin()
    const id = await die(client)
    const [result] = (await client.deadLetters.replay(id, { asNew: true, ttl: '1h' })).results
    const replacement = result !== undefined && 'task' in result ? result.task : null
    expect(replacement!.id).not.toBe(id)
    expect(shown(await client.get(replacement!.id))).toMatchObject({
      type: 'work',
      queue: 'mail',
      input: { n: 1 },
      status: 'pending',
      priority: 7,
      maxRetries: 0,
      timeout: 60_000,
      tags: { team: 'blue' },
      replayOf: id,
      attempts: 0,
      replayCount: 0,
      lastError: null,
      expiresAt: clock.wall() + 3_600_000,
    })
    await expectReplaced(client, [id])
  })

  it('[E10] leaves the key of the dead one to it, so that neither is taken for the other', async () => {
    const { client } = await begin()
    const id = await die(client)
    const key = 'key of {"n":1}'
    await client.deadLetters.replay(id, { asNew: true })
    const replacement = await client.getByIdempotencyKey(`replay:${id}:1`)
    expect(replacement).toMatchObject({ replayOf: id, status: 'pending' })
    expect((await client.getByIdempotencyKey(key)).id).toBe(id)
    const again = await client.submit('work', { n: 1 }, { idempotencyKey: key })
    expect([again.id, again.deduplicated]).toEqual([id, true])
    expect((await client.list({ status: 'pending' })).tasks.map((task) => task.id)).toEqual([replacement.id])
  })

  it('asked for again gives the same task; after unarchive, another', async () => {
    const { client } = await begin()
    const id = await die(client)
    const replay = async () => (await client.deadLetters.replay(id, { asNew: true })).results
    const [first] = await replay()
    const [second] = await replay()
    expect(second).toMatchObject({ id, task: { id: (first as { task: { id: string } }).task.id } })
    await expectReplaced(client, [id])
    await client.unarchive(id)
    const [third] = await replay()
    expect((third as { task: { id: string } }).task.id).not.toBe((first as { task: { id: string } }).task.id)
    expect((await client.get(id)).replayCount).toBe(2)
  })

  it('asked for by two at once makes one', async () => {
    const { client, another } = await begin()
    const ids = [await die(client, 1), await die(client, 2), await die(client, 3)]
    const other = await another()
    const reports = await Promise.all([client, other].map((one) => one.deadLetters.replay(ids, { asNew: true })))
    for (const { results } of reports) for (const result of results) expect(result).toHaveProperty('task')
    await expectReplaced(client, ids)
  })

  it('of a task that somebody brings back meanwhile takes the new one back', async () => {
    const { client, another } = await begin()
    const id = await die(client)
    const meddler = await another()
    const slow = await another({
      through: (store) =>
        new Proxy(store, {
          get: (target, name) =>
            name === 'insert'
              ? async (...args: Parameters<Store['insert']>) => {
                  const inserted = await target.insert(...args)
                  await meddler.deadLetters.replay(id)
                  return inserted
                }
              : Reflect.get(target, name),
        }),
    })
    const { results } = await slow.deadLetters.replay(id, { asNew: true })
    expect(results).toMatchObject([{ id, error: { code: 'CANNOT_REPLAY' } }])
    expect((await client.list()).tasks.map((task) => [task.id, task.status])).toEqual([[id, 'pending']])
  })

  it('does not take for done what an operator cancelled', async () => {
    const { client, clock, another } = await begin()
    const id = await die(client)
    const crashed = await another({
      vanishes: true,
      through: (store) => lossy(store, (call) => (call === 'commit' ? 'silence' : 'pass')),
    })
    void crashed.deadLetters.replay(id, { asNew: true })
    await clock.settle()
    const [replacement] = (await client.list({ status: 'pending' })).tasks
    await client.cancel(replacement!.id)
    const { results } = await client.deadLetters.replay(id, { asNew: true })
    expect(results).toMatchObject([{ id, error: { code: 'CANNOT_REPLAY' } }])
    expect((await client.get(id)).status).toBe('failed')
    await client.delete(replacement!.id)
    await client.deadLetters.replay(id, { asNew: true })
    await expectReplaced(client, [id])
  })
})

const WRITES: ReadonlySet<string> = new Set(['insert', 'commit', 'get'])

/** The nth call of the replay meets its fate; `silence` from then on is a process that has died. */
const failingAt =
  (nth: number, fate: Fate): ((store: Store) => Store) =>
  (store) => {
    let calls = 0
    return lossy(store, (call) => {
      if (!WRITES.has(call)) return 'pass'
      calls++
      if (fate === 'silence') return calls >= nth ? 'silence' : 'pass'
      return calls === nth ? fate : 'pass'
    })
  }

describe('replay as new, at every point where it can break off', () => {
  // get, insert, commit: and one more, which none reaches unless it has something to repeat.
  for (const nth of [1, 2, 3, 4]) {
    it(`[T02] a process that dies at its call ${nth} is put right by asking again`, async () => {
      const { client, clock, another } = await begin()
      const ids = [await die(client, 1), await die(client, 2)]
      const dying = await another({ vanishes: true, through: failingAt(nth, 'silence') })
      void dying.deadLetters.replay(ids, { asNew: true })
      await clock.advance(60_000)
      await client.deadLetters.replay(ids, { asNew: true })
      await expectReplaced(client, ids)
    })

    for (const fate of ['lose-reply', 'drop-request'] as const) {
      it(`[T02] ${fate} at its call ${nth} is nothing that anybody sees`, async () => {
        const { client, clock, another } = await begin()
        const ids = [await die(client, 1), await die(client, 2)]
        const lossyOne = await another({ through: failingAt(nth, fate) })
        const { results } = await passing(clock, lossyOne.deadLetters.replay(ids, { asNew: true }))
        for (const result of results) expect(result).toHaveProperty('task')
        await expectReplaced(client, ids)
      })

      it(`[T02] in place, ${fate} at call ${nth} does not replay twice`, async () => {
        const { client, clock, another } = await begin()
        const ids = [await die(client, 1), await die(client, 2)]
        const lossyOne = await another({ through: failingAt(nth, fate) })
        const { results } = await passing(clock, lossyOne.deadLetters.replay(ids))
        for (const result of results) expect(result).toHaveProperty('task')
        for (const id of ids) {
          const task = await client.get(id)
          expect(shown(task)).toMatchObject({ status: 'pending', replayCount: 1 })
          expect(task.history.filter(({ move }) => move === 'replay')).toHaveLength(1)
        }
      })
    }
  }

  it('the planted bug, a store that forgets reserved keys, makes two of one', async () => {
    const { client, clock, another } = await begin()
    const forgetful = (store: Store): Store =>
      new Proxy(store, {
        get: (target, name) =>
          name === 'insert'
            ? (insertions: Parameters<Store['insert']>[0], options: Parameters<Store['insert']>[1]) =>
                target.insert(
                  insertions.map(({ task }) => ({ task: { ...task, idempotencyKey: null } })),
                  options,
                )
            : Reflect.get(target, name),
      })
    const id = await die(client)
    const dying = await another({ vanishes: true, through: (store) => failingAt(3, 'silence')(forgetful(store)) })
    void dying.deadLetters.replay(id, { asNew: true })
    await clock.advance(1_000)
    await (await another({ through: forgetful })).deadLetters.replay(id, { asNew: true })
    await expect(expectReplaced(client, [id])).rejects.toThrow()
  })
})
