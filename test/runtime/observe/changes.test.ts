/** What changes in the store, told once, whoever changes it. */
import { describe, expect, it } from 'vitest'
import type { Client, FollowOptions, TaskChange } from '../../../src/index.ts'
import { HoldfastError } from '../../../src/index.ts'
import type { Store, TaskRecord } from '../../../src/store/store.ts'
import { type Bench, begin } from '../setup.ts'

/** What was told so far, as `type:move`. */
const following = (client: Client, options: FollowOptions = {}) => {
  const stop = new AbortController()
  const told: TaskChange[] = []
  const ended = (async () => {
    for await (const change of client.changes({ ...options, signal: stop.signal })) told.push(change)
  })()
  ended.catch(() => {})
  return {
    told: () => told.map(({ entry, task }) => `${task.type}:${entry.move}`),
    changes: () => told,
    entries: () => told.map(({ entry }) => entry.n),
    async stop(clock: Bench['clock']) {
      stop.abort()
      await clock.settle()
      await ended
    },
    ended,
  }
}

const LOOK = 250

describe('changes', () => {
  it('tells the moves of another process, each once and in the order of time', async () => {
    const { client, another, clock } = await begin()
    const other = await another({ name: 'elsewhere' })
    await other.submit('before', 1)
    await clock.advance(5)
    const tail = following(client)
    await clock.advance(LOOK)
    expect(tail.told()).toEqual([])
    const { id } = await other.submit('mail', 1)
    await clock.advance(LOOK)
    expect(tail.told()).toEqual(['mail:submit'])
    await clock.advance(1)
    const lease = await other.claim(id, { workerId: 'w' })
    await clock.advance(1)
    await lease.reschedule(0)
    await clock.advance(1)
    await (await other.claim(id, { workerId: 'w' })).complete(1)
    await clock.advance(60_000)
    expect(tail.told()).toEqual(['mail:submit', 'mail:claim', 'mail:reschedule', 'mail:claim', 'mail:complete'])
    await tail.stop(clock)
  })

  it('tells changes of one millisecond, whichever look finds them', async () => {
    const { client, clock } = await begin()
    const tail = following(client)
    await clock.advance(LOOK)
    await client.submit('one', 1)
    await clock.advance(0)
    await client.submit('two', 1)
    const [first] = (await client.list({ order: 'oldest' })).tasks
    await client.cancel(first!.id)
    await clock.advance(30_000)
    expect(tail.told().sort()).toEqual(['one:cancel', 'one:submit', 'two:submit'])
    await tail.stop(clock)
  })

  it('tells what is moved between the call and the first turn of the loop', async () => {
    const { client, clock } = await begin()
    await client.submit('before', 1)
    await clock.advance(1)
    const changes = client.changes()
    await clock.advance(1)
    await client.submit('between', 1)
    const { value } = await changes.next()
    expect(value?.task.type).toBe('between')
    await changes.return()
  })

  it('begins in the past when it is asked to, and takes queue, type and tag', async () => {
    const { client, clock } = await begin()
    await client.submit('old', 1)
    await clock.advance(3_600_000)
    const since = clock.wall()
    await clock.advance(1)
    await client.submit('a', 1, { queue: 'q1', tags: { team: 'blue' } })
    await client.submit('b', 1, { queue: 'q2' })
    await clock.advance(1_800_000)
    const tails = [
      following(client, { since }),
      following(client, { since, queue: 'q2' }),
      following(client, { since, type: 'a' }),
      following(client, { since, tag: { name: 'team', value: 'blue' } }),
      following(client, { since: since - 3_600_001 }),
    ]
    await clock.advance(60_000)
    expect(tails.map(({ told }) => told().sort())).toEqual([
      ['a:submit', 'b:submit'],
      ['b:submit'],
      ['a:submit'],
      ['a:submit'],
      ['a:submit', 'b:submit', 'old:submit'],
    ])
    for (const tail of tails) await tail.stop(clock)
  })

  it('ends when the client is closed, and refuses what it cannot use', async () => {
    const { another, clock } = await begin()
    const other = await another({ vanishes: true })
    const tail = following(other)
    await clock.advance(LOOK)
    await other.close()
    await clock.settle()
    await expect(tail.ended).resolves.toBeUndefined()
    const { client } = await begin()
    expect(() => client.changes({ queue: 'not a name' })).toThrow('queue')
    expect(() => client.changes({ since: 'yesterday' })).toThrow('since')
  })

  it('goes on after the store was away, and tells what happened meanwhile', async () => {
    let isAway = false
    const away = (store: Store): Store =>
      new Proxy(store, {
        get(target, name) {
          if (name === 'list' && isAway)
            return () => Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'no contact'))
          const value: unknown = Reflect.get(target, name, target)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    const { client, another, clock } = await begin()
    const tail = following(await another({ through: away }))
    await clock.advance(LOOK)
    isAway = true
    await clock.advance(1_000)
    await client.submit('meanwhile', 1)
    await clock.advance(120_000)
    expect(tail.told()).toEqual([])
    isAway = false
    await clock.advance(5_000)
    expect(tail.told()).toEqual(['meanwhile:submit'])
    await tail.stop(clock)
  })
})

/** As a transaction that commits long after its writes were stamped. */
const hiding =
  (isHidden: (task: TaskRecord) => boolean, visibleUntil?: () => Promise<number>) =>
  (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        if (name === 'list')
          return async (...args: Parameters<Store['list']>) => ({
            tasks: (await target.list(...args)).tasks.filter((task) => !isHidden(task)),
            stoppedAt: null,
          })
        if (name === 'visibleUntil') return visibleUntil
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })

describe('a change that comes to light late', () => {
  it.each([15_000, 600_000])('is told, %i ms after its stamp', async (late) => {
    const { client, another, clock } = await begin()
    let hidden = true
    const openedAt = clock.wall()
    const visibleUntil = async (): Promise<number> => (hidden ? openedAt : clock.wall())
    const tail = following(await another({ through: hiding(({ type }) => hidden && type === 'late', visibleUntil) }))
    await clock.advance(1_000)
    await client.submit('late', 1)
    await clock.advance(late)
    await client.submit('soon', 1)
    await clock.advance(1_000)
    expect(tail.told()).toEqual(['soon:submit'])
    hidden = false
    await clock.advance(6_000)
    expect(tail.told()).toEqual(['soon:submit', 'late:submit'])
    await clock.advance(60_000)
    expect(tail.told()).toEqual(['soon:submit', 'late:submit'])
    await tail.stop(clock)
  })

  it('would be missed by a follower that believes every stamp is seen at once', async () => {
    const { client, another, clock } = await begin()
    let hidden = true
    const tail = following(await another({ through: hiding(({ type }) => hidden && type === 'late') }))
    await clock.advance(1_000)
    await client.submit('late', 1)
    await clock.advance(600_000)
    hidden = false
    await clock.advance(60_000)
    expect(tail.told()).toEqual([])
    await tail.stop(clock)
  })

  describe('for viewers', () => {
    /** Three tasks every seven milliseconds. */
    const pour = async ({ client, clock }: Pick<Bench, 'client' | 'clock'>, looks: number) => {
      for (let n = 0; n < looks; n++) {
        await client.submitMany([1, 2, 3].map((input) => ({ type: 'mail', input })))
        await clock.advance(7)
      }
    }
    const weightOf = (changes: readonly TaskChange[]): number =>
      changes.reduce((sum, { weight = 1 }) => sum + weight, 0)

    it('reports a part of a flood, which represents about all of it', async () => {
      const { client, clock } = await begin()
      const tail = following(client, { most: 40 })
      await clock.advance(LOOK)
      await pour({ client, clock }, 1_000)
      await clock.advance(5_000)
      const told = tail.changes()
      expect(told.length).toBeLessThan(1_500)
      expect(weightOf(told)).toBeGreaterThan(3_000 * 0.8)
      expect(weightOf(told)).toBeLessThan(3_000 * 1.2)
      await tail.stop(clock)
    })

    it('tells every change before the flood and, some seconds later, after it', async () => {
      const { client, clock } = await begin()
      const tail = following(client, { most: 40 })
      await clock.advance(LOOK)
      await client.submit('before', 1)
      await clock.advance(LOOK)
      await pour({ client, clock }, 400)
      await clock.advance(20_000)
      const { id } = await client.submit('after', 1)
      await clock.advance(1_000)
      await client.cancel(id)
      await clock.advance(1_000)
      expect(tail.told().filter((one) => !one.startsWith('mail'))).toEqual([
        'before:submit',
        'after:submit',
        'after:cancel',
      ])
      await tail.stop(clock)
    })

    it('never looks far back, also when it begins in the middle of a flood', async () => {
      let furthest = 0
      const watched = (store: Store): Store =>
        new Proxy(store, {
          get(target, name) {
            if (name !== 'list') return Reflect.get(target, name, target)
            return (...[query, page]: Parameters<Store['list']>) => {
              if (query.updatedAfter !== undefined) furthest = Math.max(furthest, clock.wall() - query.updatedAfter)
              return target.list(query, page)
            }
          },
        })
      const { client, clock, another } = await begin()
      await pour({ client, clock }, 400)
      const tail = following(await another({ through: watched }), { most: 40 })
      await pour({ client, clock }, 400)
      await clock.advance(60_000)
      await client.submit('after', 1)
      await clock.advance(30_000)
      expect(tail.changes().at(-1)).not.toHaveProperty('weight')
      expect(tail.told().filter((one) => !one.startsWith('mail'))).toEqual(['after:submit'])
      expect(furthest).toBeLessThan(45_000)
      await tail.stop(clock)
    })
  })
})
