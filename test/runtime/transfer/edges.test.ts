/** The corners of a move between stores: what it refuses, what it waits for, and what it does with what it finds there. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect, silentLogger } from '../../../src/index.ts'
import { openMemory } from '../../../src/store/memory/store.ts'
import type { Store } from '../../../src/store/store.ts'
import { FakeClock } from '../../../src/testing/fake-clock.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { keptOpen, passing, refuses } from '../setup.ts'
import { Scene } from './scene.ts'

const begin = async () => {
  const clock = new FakeClock()
  const clients: Client[] = []
  const open = async (store: Store): Promise<Client> => {
    const client = await connect(keptOpen(store), { clock, random: clock.random, logger: silentLogger, name: 'test' })
    clients.push(client)
    return client
  }
  const [here, there] = [openMemory({ wall: () => clock.wall() }), openMemory({ wall: () => clock.wall() })]
  onTestFinished(async () => {
    for (const client of clients) await passing(clock, client.close(), 500)
  })
  return {
    clock,
    here,
    there,
    open,
    from: await open(here),
    to: await open(there),
    during: <T>(promise: Promise<T>): Promise<T> => passing(clock, promise, 100),
  }
}

const idle = (client: Client) => client.worker({ id: 'w1' }).handle('nothing', () => {})

describe('a move', () => {
  it('refuses while workers are live, by name, and begins nothing', async () => {
    const { from, to, there, here, clock } = await begin()
    const worker = idle(from).start()
    await clock.settle()
    await refuses('WORKERS_LIVE', 'w1')(from.moveTo(to))
    expect([...(await here.documents.list('move/')), ...(await there.documents.list('move/'))]).toEqual([])
    await worker.stop()
    await from.submit('a', 1)
    expect(await from.moveTo(to)).toMatchObject({ moved: 1, stopped: null })
  })

  it('leaves a record as it was, fence, tags and times, and its history tells of the move', async () => {
    const { from, to, here, there, clock } = await begin()
    const { id } = await from.submit('a', { deep: [1] }, { tags: { moved: 'house' }, maxRetries: 7, priority: 3 })
    await (await from.claim(id, { workerId: 'w' })).fail(new Error('once'))
    await clock.advance(1_000)
    const [before] = await here.get([id])
    await from.moveTo(to)
    const [after] = await there.get([id])
    const { revision, history, updatedAt, ...kept } = before!
    expect(after).toMatchObject({ ...kept, revision: revision + 2 })
    expect(after!.history.slice(0, -2)).toEqual(history)
    expect(after!.history.slice(-2)).toMatchObject([
      { move: 'depart', to: 'archived', reason: 'moved to memory:' },
      { move: 'arrive', to: 'pending', reason: 'moved from memory:' },
    ])
    expect(after!.updatedAt).toBeGreaterThanOrEqual(updatedAt)
    expect(await from.get(id)).toMatchObject({
      status: 'archived',
      archivedFrom: 'pending',
      tags: { moved: 'memory:' },
    })
    expect((await to.claim(id, { workerId: 'w' })).task.attempts).toBe(2)
  })

  it('moves every status, archived ones and those with a tag of the same name among them', async () => {
    const { from, to } = await begin()
    const archived = await from.submit('a', 1, { tags: { moved: 'memory' } })
    await from.cancel(archived.id)
    await from.archive(archived.id)
    const done = await from.submit('a', 2)
    await (await from.claim(done.id, { workerId: 'w' })).complete('yes')
    const expired = await from.submit('a', 3, { ttl: 0 })
    await from.markExpired(expired.id)
    expect(await from.moveTo(to)).toMatchObject({ moved: 3 })
    expect((await to.get(archived.id)).archivedFrom).toBe('cancelled')
    expect((await to.get(done.id)).output).toBe('yes')
    expect((await to.unarchive(archived.id)).status).toBe('cancelled')
    expect(await from.moveTo(to)).toMatchObject({ moved: 0 })
  })

  it('makes what stayed behind neither come back nor be pruned, and says where it lives', async () => {
    const { from, to } = await begin()
    const { id } = await from.submit('a', 1)
    await from.moveTo(to)
    await refuses('CANNOT_UNARCHIVE', 'moved to memory:')(from.unarchive(id))
    expect(await from.prune({ olderThan: 0, status: 'archived' })).toBe(0)
    expect(await from.why(id)).toMatchObject({ reason: 'moved' })
    await from.delete(id)
  })

  it('waits for a running task, and takes it along when it has ended', async () => {
    const { from, to, clock, during } = await begin()
    const { id } = await from.submit('a', 1)
    const lease = await from.claim(id, { workerId: 'w', leaseTtl: '1h' })
    const seen: number[] = []
    const moving = from.moveTo(to, { onProgress: ({ waiting }) => void seen.push(waiting) })
    await clock.advance(10_000)
    expect(seen.at(-1)).toBe(1)
    await lease.complete('done')
    expect(await during(moving)).toMatchObject({ moved: 1, stopped: null })
    expect((await to.get(id)).output).toBe('done')
  })

  it('takes a running task from a worker that is dead', async () => {
    const { from, to, during } = await begin()
    const { id } = await from.submit('a', 1)
    await from.claim(id, { workerId: 'dead', leaseTtl: '3s' })
    expect(await during(from.moveTo(to))).toMatchObject({ moved: 1 })
    expect(await to.get(id)).toMatchObject({ status: 'pending', attempts: 1, retryCount: 1 })
  })

  it('stops when it is asked to, leaves the new store paused, and goes on when it is called again', async () => {
    const { from, to, clock, during } = await begin()
    const { id } = await from.submit('a', 1)
    await from.submit('a', 2)
    await from.claim(id, { workerId: 'w', leaseTtl: '1h' })
    const stop = new AbortController()
    const moving = from.moveTo(to, { signal: stop.signal })
    await clock.advance(5_000)
    stop.abort()
    expect(await during(moving)).toMatchObject({ moved: 1, stopped: 'aborted' })
    expect(await to.queue('default').isPaused()).toBe(true)
    await (await from.lease(id, { workerId: 'w' })).complete(null)
    expect(await during(from.moveTo(to))).toMatchObject({ moved: 1, stopped: null })
    expect(await to.queue('default').isPaused()).toBe(false)
  })

  it('gives the new store time to see the pause, when workers are live there', async () => {
    const { from, to, clock, during } = await begin()
    await from.submit('a', 1)
    const worker = idle(to).start()
    await clock.settle()
    const begun = clock.mono()
    await during(from.moveTo(to))
    expect(clock.mono() - begun).toBeGreaterThanOrEqual(5_000)
    await passing(clock, worker.stop())
  })

  it('refuses to move a store to itself, however it is called', async () => {
    const { from, here, open } = await begin()
    await from.submit('a', 1)
    const same = await open(here)
    await refuses('INVALID_OPTION', 'itself')(from.moveTo(same))
    await refuses('INVALID_OPTION', 'itself')(from.moveTo(from))
    expect((await from.list()).tasks).toMatchObject([{ status: 'pending' }])
    expect(await here.documents.list('move/')).toEqual([])
  })
})

describe('a move that is not finished', () => {
  const unfinished = async () => {
    const bench = await begin()
    const { from, to, clock, during } = bench
    const { id } = await from.submit('a', 1)
    await from.claim(id, { workerId: 'w', leaseTtl: '1h' })
    const stop = new AbortController()
    const moving = from.moveTo(to, { signal: stop.signal })
    await clock.advance(1_000)
    stop.abort()
    await during(moving)
    return { ...bench, id }
  }

  it('lets nobody resume the new store by accident, only by force', async () => {
    const { to } = await unfinished()
    await refuses('MOVE_UNDER_WAY', 'unfinished move from memory:')(to.queue('default').resume())
    await to.queue('default').resume({ force: true })
    expect(await to.queue('default').isPaused()).toBe(false)
  })

  it('keeps a pause that somebody wants for itself meanwhile', async () => {
    const { from, to, id, during, there } = await unfinished()
    await to.queue('default').pause({ reason: 'mine' })
    await (await from.lease(id, { workerId: 'w' })).complete(null)
    await during(from.moveTo(to))
    expect(await to.queue('default').isPaused()).toBe(true)
    expect((await there.documents.get('pause/default'))?.value).toMatch('"reason":"mine"')
    await to.queue('default').resume()
  })

  it('lets neither store take part in another one', async () => {
    const { from, to, open } = await unfinished()
    const third = await open(openMemory())
    await refuses('MOVE_UNDER_WAY')(third.moveTo(to))
    await refuses('MOVE_UNDER_WAY')(to.moveTo(third))
    await refuses('MOVE_UNDER_WAY')(to.moveTo(from))
  })

  it('belongs to the process that went on with it last: the others stop before their next batch', async () => {
    const { from, to, here, there, open, id, during, clock } = await unfinished()
    const first = from.moveTo(to)
    const over = refuses('MOVE_UNDER_WAY', 'another process')(first)
    await clock.advance(1_000)
    const second = (await open(here)).moveTo(await open(there))
    await clock.advance(1_000)
    await (await from.lease(id, { workerId: 'w' })).complete(null)
    expect(await during(second)).toMatchObject({ stopped: null })
    await during(over)
  })

  it('takes back the copy of a task that has ended and was removed where it was', async () => {
    const { clock, here, there, open, to, from } = await begin()
    const { id } = await from.submit('a', 1)
    let dead = false
    const mover = await open(
      lossy(here, (call) => {
        dead ||= call === 'commit'
        return dead ? 'silence' : 'pass'
      }),
    )
    void mover.moveTo(to)
    await clock.advance(1_000)
    expect(await to.get(id)).toMatchObject({ status: 'archived', archivedFrom: 'pending' })
    await (await from.claim(id, { workerId: 'w' })).complete(null)
    await from.prune({ olderThan: 0 })
    await from.moveTo(to)
    expect(await there.get([id])).toEqual([null])
  })
})

it('a copy cannot expire before its task has left, and gives way to the task if it ran meanwhile', async () => {
  const { clock, here, open, to, from, during } = await begin()
  const { id } = await from.submit('a', 1, { ttl: '5s' })
  let dead = false
  const mover = await open(
    lossy(here, (call) => {
      dead ||= call === 'commit'
      return dead ? 'silence' : 'pass'
    }),
  )
  void mover.moveTo(to)
  await clock.advance(1_000)
  await (await from.claim(id, { workerId: 'w' })).complete('here')
  await refuses('CANNOT_EXPIRE')(to.markExpired(id))
  expect(await during(from.moveTo(to))).toMatchObject({ moved: 1, conflicts: [] })
  expect(await to.get(id)).toMatchObject({ status: 'completed', output: 'here' })
})

describe('what the new store has already', () => {
  it('stands for a waiting task with the same key and the same work: that is not copied', async () => {
    const { from, to } = await begin()
    const [old, made] = [
      await from.submit('a', 1, { idempotencyKey: 'k' }),
      await to.submit('a', 1, { idempotencyKey: 'k' }),
    ]
    expect(await from.moveTo(to)).toMatchObject({ moved: 0, deduplicated: 1 })
    await refuses('TASK_NOT_FOUND')(to.get(old.id))
    expect((await to.getByIdempotencyKey('k')).id).toBe(made.id)
    expect((await from.get(old.id)).status).toBe('archived')
  })

  it('still stands for it when the mover died after the task had left', async () => {
    const { clock, from, to, here, open, during } = await begin()
    const old = await from.submit('a', 1, { idempotencyKey: 'k' })
    const other = await from.submit('a', 1, { idempotencyKey: 'other' })
    const made = await to.submit('a', 1, { idempotencyKey: 'k' })
    await to.submit('b', 2, { idempotencyKey: 'other' })
    let isDead = false
    const mover = await open(
      lossy(here, (call) => {
        if (isDead) return 'silence'
        isDead = call === 'commit'
        return isDead ? 'lose-reply' : 'pass'
      }),
    )
    void mover.moveTo(to).catch(() => {})
    await clock.advance(1_000)
    expect(await from.get(old.id)).toMatchObject({ status: 'archived', archivedFrom: 'pending' })
    expect(await during(from.moveTo(to))).toMatchObject({ stopped: null, conflicts: [] })
    await refuses('TASK_NOT_FOUND')(to.get(old.id))
    expect((await to.getByIdempotencyKey('k')).id).toBe(made.id)
    expect((await to.get(other.id)).status).toBe('pending')
  })

  it('under a key of other work makes the task come without its key', async () => {
    const { from, to } = await begin()
    const { id } = await from.submit('a', 1, { idempotencyKey: 'k' })
    const other = await to.submit('a', 2, { idempotencyKey: 'k' })
    expect(await from.moveTo(to)).toMatchObject({ moved: 1, withoutKey: 1 })
    expect((await to.get(id)).status).toBe('pending')
    expect((await to.getByIdempotencyKey('k')).id).toBe(other.id)
  })

  it('under the same id and is another task is left alone, and so is ours', async () => {
    const { from, to } = await begin()
    const id = '01900000-0000-7000-8000-000000000001'
    await from.submit('a', 1, { id })
    await to.submit('b', 2, { id })
    const { id: free } = await from.submit('a', 3)
    expect(await from.moveTo(to)).toMatchObject({ moved: 1, conflicts: [id], stopped: null })
    expect([(await from.get(id)).status, (await to.get(id)).type, (await to.get(free)).type]).toEqual([
      'pending',
      'b',
      'a',
    ])
  })

  it('is what stayed behind when it left there: a task may go back, with its key, and on again', async () => {
    const { from, to } = await begin()
    const { id } = await from.submit('a', 1, { idempotencyKey: 'k' })
    for (const [here, there] of [
      [from, to],
      [to, from],
      [from, to],
    ] as const) {
      expect(await here.moveTo(there)).toMatchObject({ moved: 1, conflicts: [] })
      await (await there.claim(id, { workerId: 'w' })).release()
      expect((await there.submit('a', 1, { idempotencyKey: 'k' })).deduplicated).toBe(true)
    }
    expect((await to.get(id)).attempts).toBe(3)
  })
})

describe('a schedule', () => {
  const every = { type: 'tick', input: null, every: '1s' } as const

  it('goes on from its cursor in the new store, paused if it was, and is not to be handled in the old one', async () => {
    const { from, to, clock } = await begin()
    const made = await from.schedules.create({ id: 'a', ...every })
    await from.schedules.create({ id: 'b', ...every, paused: true })
    await from.schedules.delete((await from.schedules.create({ id: 'c', ...every })).id)
    expect(await from.moveTo(to)).toMatchObject({ schedules: 2, schedulesKeptOut: [] })
    expect(await to.schedules.list()).toMatchObject([
      { id: 'a', paused: false, cursor: made.cursor, incarnation: made.incarnation },
      { id: 'b', paused: true },
    ])
    expect((await from.schedules.get('a')).paused).toBe(true)
    await refuses('SCHEDULE_MOVED', 'memory:')(from.schedules.resume('a'))
    await refuses('SCHEDULE_MOVED')(from.schedules.trigger('a'))
    await from.schedules.delete('a')
    await clock.advance(1)
    await to.moveTo(from)
    expect((await from.schedules.list()).map(({ id, paused }) => [id, paused])).toEqual([
      ['a', false],
      ['b', true],
    ])
  })

  it('waits with its next slot until the task that it made last has left', async () => {
    const { from, to, clock, during } = await begin()
    await from.schedules.create({ id: 'a', ...every })
    const { id } = await from.schedules.trigger('a')
    const lease = await from.claim(id, { workerId: 'w', leaseTtl: '1h' })
    const moving = from.moveTo(to)
    await clock.advance(3_000)
    expect(await to.schedules.list()).toEqual([])
    await lease.complete(null)
    expect(await during(moving)).toMatchObject({ schedules: 1 })
    expect((await to.schedules.get('a')).lastTaskId).toBe(id)
  })

  it('of which the new store has one of its own is kept out, and told', async () => {
    const { from, to } = await begin()
    await from.schedules.create({ id: 'a', ...every })
    const own = await to.schedules.create({ id: 'a', ...every, every: '1h' })
    expect(await from.moveTo(to)).toMatchObject({ schedules: 0, schedulesKeptOut: ['a'] })
    expect((await to.schedules.get('a')).incarnation).toBe(own.incarnation)
    expect((await from.schedules.get('a')).paused).toBe(true)
  })
})

it('a reply that is lost after any write of the mover neither doubles nor loses anything', {
  timeout: 120_000,
}, async () => {
  let n = 1
  for (let isOver = false; !isOver; n++) {
    const scene = new Scene()
    await scene.set()
    isOver = !(await scene.moveWithLostReply(n))
    expect(await scene.wrongIn(), `reply ${n} lost`).toEqual([])
    await scene.end()
  }
  expect(n).toBeGreaterThan(15)
})
