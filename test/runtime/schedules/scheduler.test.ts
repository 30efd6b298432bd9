/** SPEC 4: every worker is a scheduler; one task a slot, whatever is edited, lost or late. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Client, defineTask, type ScheduleOptions, type ScheduleTiming, type Task } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { type Fate, lossy, type StoreCall } from '../../../src/testing/lossy-store.ts'
import { type Bench, begin, gate, refuses } from '../setup.ts'

const NOON = Date.UTC(2026, 0, 28, 12)
const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** A worker that schedules, and runs what the schedules make. */
const working = (client: Client, handler: () => unknown = () => null): Client => {
  client.worker({ concurrency: 100 }).handle('tick', handler).start()
  return client
}

/** A worker that schedules, and leaves the tasks where they are. */
const scheduling = (client: Client): Client => {
  client
    .worker({ queues: ['elsewhere'] })
    .handle('nothing', () => null)
    .start()
  return client
}

const all = async (client: Client): Promise<Task[]> => [...(await client.list({ order: 'oldest', limit: 1_000 })).tasks]

/** The instants in the keys of the tasks that a schedule made. */
const slots = async (client: Client): Promise<number[]> =>
  (await all(client)).map(({ idempotencyKey }) => Date.parse(idempotencyKey!.slice(-24))).sort((a, b) => a - b)

type Wish = Partial<Omit<ScheduleOptions, 'cron' | 'every' | 'mode' | 'timezone'>> & ScheduleTiming

/** Of `every` and `cron` the one that is wished for. */
const tick = ({ every = '1m', ...more }: Wish = {}): ScheduleOptions<string> =>
  ({
    id: 'tick',
    type: 'tick',
    input: { n: 1 },
    ...(more.cron === undefined ? { every } : null),
    ...more,
  }) as ScheduleOptions<string>

describe('[M02] a schedule', () => {
  it('makes one task at each slot, and none before the first', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    await client.schedules.create(tick({ overlap: 'allow', options: { queue: 'q', priority: 7, tags: { a: 'b' } } }))
    await clock.advance(MINUTE - 1)
    expect(await slots(client)).toEqual([])
    await clock.advance(1)
    expect(await slots(client)).toEqual([NOON + MINUTE])
    const [task] = await all(client)
    expect(task).toMatchObject({ scheduleId: 'tick', type: 'tick', input: { n: 1 }, queue: 'q', priority: 7 })
    expect(task).toMatchObject({ tags: { a: 'b' }, createdAt: NOON + MINUTE })
    await clock.advance(2 * MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE, NOON + 2 * MINUTE, NOON + 3 * MINUTE])
  })

  it('goes by the calendar of its timezone', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    const daily = tick({ cron: '30 8 * * *', timezone: 'America/New_York' })
    await client.schedules.create({ ...daily, id: 'daily' })
    await clock.advance(2 * HOUR)
    expect(await slots(client)).toEqual([NOON + 1.5 * HOUR])
    expect(await client.schedules.get('daily')).toMatchObject({ nextAt: NOON + 1.5 * HOUR + DAY })
  })

  it('[M06] is a matter of the worker, not of the queue: it can be switched off, and idle it only looks now and then', async () => {
    let looks = 0
    const { client, clock } = await begin({
      through: (store) =>
        lossy(store, (call, [prefix]) => {
          if (call === 'documents.list' && prefix === 'schedule/') looks++
          return 'pass'
        }),
    })
    await client.schedules.create(tick({ every: '1h' }))
    client
      .worker({ scheduler: false })
      .handle('nothing', () => null)
      .start()
    await clock.advance(2 * HOUR)
    expect([await slots(client), looks]).toEqual([[], 0])
    scheduling(client)
    await clock.advance(30 * MINUTE)
    expect(looks).toBeLessThanOrEqual((30 * MINUTE) / 3_000 + 1)
  })

  it('[M01] is not needed for a task that is due once: that is submitted with its instant', async () => {
    const { client, clock } = await begin()
    const ran: number[] = []
    working(client, () => ran.push(clock.wall()))
    await client.submit('tick', null, { at: NOON + HOUR })
    await clock.advance(2 * HOUR)
    expect(ran).toEqual([NOON + HOUR])
  })

  it('is fired once by five schedulers in five processes', async () => {
    const { client, clock, another } = await begin()
    for (let n = 0; n < 5; n++) scheduling(await another())
    await client.schedules.create(tick({ every: '1s', overlap: 'allow', catchUp: 'all' }))
    await clock.advance(100_000)
    expect(await slots(client)).toEqual(Array.from({ length: 100 }, (_, k) => NOON + (k + 1) * 1_000))
  })
})

describe('[M03] downtime', () => {
  const downFor = async (bench: Bench, options: Partial<ScheduleOptions>, downtime: number): Promise<number[]> => {
    const { client, clock, passing } = bench
    await client.schedules.create(tick({ every: '1h', overlap: 'allow', ...options }))
    await clock.advance(downtime)
    scheduling(client)
    await passing(clock.settle(), 1)
    return slots(client)
  }

  it('of a day: none until the next slot, when missed slots are skipped', async () => {
    const bench = await begin()
    expect(await downFor(bench, {}, DAY + 30 * MINUTE)).toEqual([])
    expect(await bench.client.schedules.get('tick')).toMatchObject({
      cursor: NOON + DAY,
      lastSkipped: { slot: NOON + DAY, reason: 'missed' },
      nextAt: NOON + DAY + HOUR,
    })
    await bench.clock.advance(30 * MINUTE)
    expect(await slots(bench.client)).toEqual([NOON + DAY + HOUR])
  })

  it('of a day: the newest at once, then by the old grid', async () => {
    const bench = await begin()
    expect(await downFor(bench, { catchUp: 'last' }, DAY + 30 * MINUTE)).toEqual([NOON + DAY])
    await bench.clock.advance(30 * MINUTE)
    expect(await slots(bench.client)).toEqual([NOON + DAY, NOON + DAY + HOUR])
  })

  it('of a day: all of them, but no more than 1,000', async () => {
    const bench = await begin()
    expect(await downFor(bench, { catchUp: 'all' }, DAY + 30 * MINUTE)).toHaveLength(24)
    const other = await begin()
    expect(await downFor(other, { catchUp: 'all', every: '1m' }, DAY)).toHaveLength(1_000)
  })

  it('of less than a minute fires the newest slot alone, and no burst', async () => {
    const bench = await begin()
    expect(await downFor(bench, { every: '1s' }, 59_900)).toEqual([NOON + 59_000])
  })

  // Without overlap a burst is dropped anyway: only `allow` would show one.
  it.each([
    ['59 s', 'skip', 59_900],
    ['59 s', 'allow', 59_900],
    ['five minutes', 'allow', 5 * MINUTE + 900],
    ['a week', 'skip', 7 * DAY + 900],
    ['a week', 'allow', 7 * DAY + 900],
  ] as const)('of %s, overlap %s, is followed by one run, not by a burst', async (_, overlap, downtime) => {
    const { client, clock } = await begin()
    await client.schedules.create(tick({ every: '1s', overlap }))
    await clock.advance(downtime)
    const ran: number[] = []
    working(client, () => ran.push(clock.wall()))
    await clock.settle()
    expect(ran).toHaveLength(1)
    // From then on one a second, as before.
    await clock.advance(10_000)
    expect(ran).toHaveLength(11)
  })

  it('with catch-up and without overlap, runs what was missed one after another, oldest first, and drops nothing', async () => {
    const bench = await begin()
    const { client, clock } = bench
    await downFor(bench, { every: '1h', overlap: 'skip', catchUp: 'all' }, 5 * HOUR + 30 * MINUTE)
    const ran: number[] = []
    client
      .worker({ scheduler: false })
      .handle('tick', (_, ctx) => void ran.push(Date.parse(ctx.task.idempotencyKey!.slice(-24))))
      .start()
    await clock.advance(MINUTE)
    expect(ran).toEqual(Array.from({ length: 5 }, (_, k) => NOON + (k + 1) * HOUR))
  })

  it('[M04] of any length leaves a fixed rate on its grid', async () => {
    const bench = await begin()
    await downFor(bench, { every: '7m', catchUp: 'last' }, 10 * HOUR + 12_345)
    await bench.clock.advance(HOUR)
    for (const slot of await slots(bench.client)) expect((slot - NOON) % (7 * MINUTE)).toBe(0)
  })
})

describe('[M04] a fixed rate', () => {
  it('does not drift over 10,000 slots with slow handlers', async () => {
    const { client, clock } = await begin({ retention: { completed: 0 } })
    const born: number[] = []
    client
      .worker({ concurrency: 100 })
      .handle('tick', async (_, { task }) => {
        born.push(task.createdAt)
        await new Promise<void>((done) => void clock.after(1_700, done))
      })
      .start()
    await client.schedules.create(tick({ every: '1s', overlap: 'allow' }))
    await clock.advance(10_000_000)
    expect(born).toEqual(Array.from({ length: 10_000 }, (_, k) => NOON + (k + 1) * 1_000))
    await clock.advance(1_700)
  }, 60_000)
})

describe('overlap', () => {
  it('is skipped while the last task has not ended, and fires again when it has', async () => {
    const { client, clock } = await begin()
    const doors = [gate(), gate()]
    let runs = 0
    working(client, () => doors[runs++]!.opened)
    await client.schedules.create(tick())
    await clock.advance(3 * MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE])
    expect(await client.schedules.get('tick')).toMatchObject({
      lastSkipped: { slot: NOON + 3 * MINUTE, reason: 'overlap', taskId: expect.any(String) },
    })
    const [running] = (await client.list()).tasks
    const { lastSkipped } = await client.schedules.get('tick')
    expect(lastSkipped!.taskId).toBe(running!.id)
    expect((await client.why(running!.id)).skippedSlot).toEqual(lastSkipped)
    doors[0]!.open()
    await clock.advance(MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE, NOON + 4 * MINUTE])
    const { past } = await client.schedules.get('tick')
    expect(
      past.map(({ slot, reason, taskId }) => [(slot - NOON) / MINUTE, reason ?? (taskId ? 'fired' : 'nothing')]),
    ).toEqual([
      [1, 'fired'],
      [2, 'overlap'],
      [3, 'overlap'],
      [4, 'fired'],
    ])
    expect(past[0]!.taskId).toBe(running!.id)
    doors[1]!.open()
  })

  it('is remembered for the last twenty slots', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    await client.schedules.create(tick({ overlap: 'allow' }))
    await clock.advance(30 * MINUTE)
    const { past } = await client.schedules.get('tick')
    expect(past.map(({ slot }) => (slot - NOON) / MINUTE)).toEqual(Array.from({ length: 20 }, (_, k) => k + 11))
  })

  it('is allowed when asked for', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    await client.schedules.create(tick({ overlap: 'allow' }))
    await clock.advance(3 * MINUTE)
    expect(await slots(client)).toHaveLength(3)
  })
})

describe('[M04] a fixed delay', () => {
  const delayed = tick({ mode: 'fixed-delay' })

  it('is measured from the end of the last run', async () => {
    const { client, clock } = await begin()
    const doors = Array.from({ length: 3 }, () => gate())
    let runs = 0
    working(client, () => doors[runs++]!.opened)
    await client.schedules.create(delayed)
    await clock.advance(MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE])
    await clock.advance(90_000)
    expect(await client.schedules.get('tick')).toMatchObject({ nextAt: null })
    doors[0]!.open()
    await clock.advance(3_000)
    const end = (await all(client))[0]!.completedAt!
    expect(end).toBe(NOON + 150_000)
    await clock.advance(MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE, end + MINUTE])
    for (const door of doors) door.open()
  })

  it('counts a task that is gone as ended when that was noticed: a gap is never shorter than the delay', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    await client.schedules.create(delayed)
    await clock.advance(MINUTE)
    const [task] = await all(client)
    await clock.advance(10_000)
    await client.cancel(task!.id)
    await client.delete(task!.id)
    await clock.advance(59_999)
    expect(await slots(client)).toEqual([])
    await clock.advance(2_001)
    expect(await slots(client)).toHaveLength(1)
  })

  it('keeps its gaps where completed tasks are removed at once', async () => {
    const { client, clock, another } = await begin()
    const own = await another({ retention: { completed: 0 } })
    const ran: number[] = []
    own
      .worker()
      .handle(delayed.type as string, () => void ran.push(clock.wall()))
      .start()
    await client.schedules.create(tick({ mode: 'fixed-delay', every: '10s' }))
    await clock.advance(2 * MINUTE)
    expect(ran.length).toBeGreaterThan(5)
    for (const [i, at] of ran.slice(1).entries()) expect(at - ran[i]!).toBeGreaterThanOrEqual(10_000)
  })

  it('has never more than one to make up for', async () => {
    for (const [catchUp, fired] of [
      ['skip', 0],
      ['last', 1],
      ['all', 1],
    ] as const) {
      const { client, clock } = await begin()
      await client.schedules.create({ ...delayed, catchUp, every: '1h' } as ScheduleOptions<string>)
      await clock.advance(DAY + 30 * MINUTE)
      scheduling(client)
      await clock.settle()
      expect(await slots(client), catchUp).toHaveLength(fired)
    }
  })
})

describe('an edit', () => {
  it('of the input leaves the slots where they are', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    const before = await client.schedules.create(tick({ overlap: 'allow' }))
    await clock.advance(90_000)
    const after = await client.schedules.update('tick', { input: { n: 2 } })
    expect(after.incarnation).not.toBe(before.incarnation)
    await clock.advance(90_000)
    expect((await all(client)).map(({ input }) => input)).toEqual([{ n: 1 }, { n: 2 }, { n: 2 }])
    expect(await slots(client)).toEqual([1, 2, 3].map((k) => NOON + k * MINUTE))
  })

  it('of the plan begins a new one, after what is due by the old one', async () => {
    const { client, clock } = await begin()
    await client.schedules.create(tick({ overlap: 'allow' }))
    // Nobody schedules, so the slot of this moment is still to come when the plan is changed.
    await clock.advance(MINUTE)
    await client.schedules.update('tick', { every: '10m' })
    expect(await slots(client)).toEqual([NOON + MINUTE])
    scheduling(client)
    await clock.advance(10 * MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE, NOON + 11 * MINUTE])
    await client.schedules.update('tick', { cron: '0 * * * *', timezone: 'UTC' })
    expect(await client.schedules.get('tick')).toMatchObject({ every: null, mode: null, nextAt: NOON + HOUR })
    await client.schedules.update('tick', { timezone: 'Asia/Kathmandu' })
    expect(await client.schedules.get('tick')).toMatchObject({ cron: '0 * * * *', nextAt: NOON + 15 * MINUTE })
  })

  it('while a slot is half-way neither swallows nor doubles it', async () => {
    const held = gate()
    let inserts = 0
    const { client, clock, another } = await begin({
      through: (store) =>
        holding(store, async () => {
          if (++inserts === 1) await held.opened
        }),
    })
    scheduling(client)
    await client.schedules.create(tick({ overlap: 'allow' }))
    await clock.advance(MINUTE)
    const editor = await another()
    expect(await slots(editor)).toEqual([])
    await editor.schedules.update('tick', { input: { n: 2 } })
    expect(await slots(editor)).toEqual([NOON + MINUTE])
    held.open()
    await clock.advance(MINUTE)
    expect(await slots(editor)).toEqual([NOON + MINUTE, NOON + 2 * MINUTE])
  })

  it('at the very moment of a slot, 200 times over, neither swallows nor doubles one', async () => {
    const { client, clock, another } = await begin()
    for (let n = 0; n < 3; n++) scheduling(await another())
    const editors = await Promise.all([another(), another()])
    await client.schedules.create(tick({ every: '1s', overlap: 'allow' }))
    await clock.advance(500)
    for (let k = 1; k <= 200; k++) {
      const edits = editors.map(async ({ schedules }, n) => {
        // Half-way to the slot: a millisecond before it, with it, or after it.
        await new Promise<void>((done) => void clock.after(499 + ((k + n) % 3), done))
        await schedules.update('tick', { input: { k, n } })
      })
      await clock.advance(1_000)
      await Promise.all(edits)
    }
    expect(await slots(client)).toEqual(Array.from({ length: 200 }, (_, k) => NOON + (k + 1) * 1_000))
  })

  it('by delete ends it, and a new one of the same id is another', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    await client.schedules.create(tick({ overlap: 'allow' }))
    await refuses('ALREADY_EXISTS')(client.schedules.create(tick()))
    await clock.advance(MINUTE)
    await client.schedules.delete('tick')
    await clock.advance(5 * MINUTE)
    expect(await client.schedules.list()).toEqual([])
    await refuses('SCHEDULE_NOT_FOUND')(client.schedules.get('tick'))
    await refuses('SCHEDULE_NOT_FOUND')(client.schedules.delete('tick'))
    expect(await slots(client)).toEqual([NOON + MINUTE])
    await client.schedules.create(tick({ overlap: 'allow' }))
    await clock.advance(MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE, NOON + 7 * MINUTE])
  })

  it('by delete is not undone by a scheduler that read it before', async () => {
    const held = gate()
    let inserts = 0
    const { client, clock, another } = await begin({
      through: (store) =>
        holding(store, async () => {
          if (++inserts === 1) await held.opened
        }),
    })
    scheduling(client)
    await client.schedules.create(tick({ overlap: 'allow' }))
    await clock.advance(MINUTE)
    const editor = await another()
    await editor.schedules.delete('tick')
    const { incarnation } = await editor.schedules.create(tick({ every: '1h' }))
    held.open()
    await clock.advance(5 * MINUTE)
    expect(await editor.schedules.get('tick')).toMatchObject({ incarnation, every: HOUR })
    expect(await slots(editor)).toEqual([NOON + MINUTE])
  })

  it('by others is seen within seconds', async () => {
    const { client, clock, another } = await begin()
    scheduling(client)
    await clock.advance(1_000)
    await (await another()).schedules.create(tick({ every: '4s', overlap: 'allow' }))
    await clock.advance(4_000)
    expect(await slots(client)).toEqual([NOON + 5_000])
  })
})

describe('by hand', () => {
  it('pause stops it, and resume makes up for nothing', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    await client.schedules.create(tick({ overlap: 'allow', catchUp: 'all' }))
    expect(await client.schedules.pause('tick')).toMatchObject({ paused: true, nextAt: null })
    expect(await client.schedules.pause('tick')).toMatchObject({ paused: true })
    await clock.advance(10 * MINUTE + 1)
    expect(await slots(client)).toEqual([])
    expect(await client.schedules.resume('tick')).toMatchObject({ paused: false, nextAt: NOON + 11 * MINUTE })
    await clock.advance(MINUTE)
    expect(await slots(client)).toEqual([NOON + 11 * MINUTE])
  })

  it('pause stops one that has fired before, in every process', async () => {
    const { client, clock, another } = await begin()
    scheduling(client)
    scheduling(await another())
    await client.schedules.create(tick({ overlap: 'allow' }))
    await clock.advance(2 * MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE, NOON + 2 * MINUTE])
    await client.schedules.pause('tick')
    await clock.advance(10 * MINUTE)
    expect(await slots(client)).toHaveLength(2)
  })

  it('trigger makes a task each time, also of a paused one, and counts as the last run', async () => {
    const { client, clock } = await begin()
    scheduling(client)
    await client.schedules.create(tick({ paused: true }))
    const [one, two] = [await client.schedules.trigger('tick'), await client.schedules.trigger('tick')]
    expect(one.id).not.toBe(two.id)
    expect(one).toMatchObject({ scheduleId: 'tick', input: { n: 1 }, deduplicated: false })
    expect(await client.schedules.show('tick')).toMatchObject({ lastTaskId: two.id })
    await client.schedules.resume('tick')
    await clock.advance(MINUTE)
    expect(await all(client)).toHaveLength(2)
    await client.cancel(two.id)
    await clock.advance(MINUTE)
    expect(await all(client)).toHaveLength(3)
  })

  it('next tells the slots to come, also of a paused one', async () => {
    const { client } = await begin()
    await client.schedules.create(tick({ paused: true }))
    expect(await client.schedules.next('tick', 3)).toEqual([1, 2, 3].map((k) => NOON + k * MINUTE))
    expect(await client.schedules.next('tick')).toHaveLength(1)
    await refuses('INVALID_OPTION', /count/)(client.schedules.next('tick', 0))
    await refuses('SCHEDULE_NOT_FOUND')(client.schedules.next('tock'))
  })

  it('a schedule reads as JSON with ISO instants', async () => {
    const { client } = await begin()
    const schedule = await client.schedules.create(tick())
    expect(JSON.parse(JSON.stringify(schedule))).toEqual({
      id: 'tick',
      incarnation: expect.any(String),
      type: 'tick',
      input: { n: 1 },
      encoding: 'json',
      cron: null,
      timezone: null,
      every: MINUTE,
      mode: 'fixed-rate',
      overlap: 'skip',
      catchUp: 'skip',
      options: {},
      paused: false,
      cursor: '2026-01-28T12:00:00.000Z',
      nextAt: '2026-01-28T12:01:00.000Z',
      lastTaskId: null,
      lastSkipped: null,
      past: [],
      createdAt: '2026-01-28T12:00:00.000Z',
      updatedAt: '2026-01-28T12:00:00.000Z',
    })
  })

  it.each<[what: string, options: Record<string, unknown>, names: RegExp]>([
    ['no plan', { every: undefined }, /cron or every/],
    ['an impossible date', { every: undefined, cron: '0 0 30 2 *' }, /cron '0 0 30 2 \*' never comes/],
    ['a bad id', { id: 'a b' }, /id 'a b'/],
    ['a bad type', { type: '' }, /type ''/],
    ['an input that is none', { input: undefined }, /input is undefined/],
    ['a bad overlap', { overlap: 'queue' }, /overlap must be/],
    ['a bad catch-up', { catchUp: 'some' }, /catchUp must be/],
    ['an unknown option', { evry: '1m' }, /evry is not an option of schedules.create: did you mean every/],
    ['an unknown option of its tasks', { options: { prioirty: 1 } }, /prioirty is not an option of submit/],
    ['a bad option of its tasks', { options: { timeout: '5' } }, /timeout: '5' has no unit/],
    ['a key for all of its tasks', { options: { idempotencyKey: 'k' } }, /options.idempotencyKey belongs to one task/],
  ])('%s is refused, and nothing is written', async (_, options, names) => {
    const { client, store } = await begin()
    const wishes = Object.fromEntries(
      Object.entries({ ...tick(), ...options }).filter(([name, value]) => name === 'input' || value !== undefined),
    )
    await expect(client.schedules.create(wishes as never)).rejects.toThrow(names)
    expect(await store.documents.list('schedule/')).toEqual([])
  })

  it('a definition brings its schema and its defaults', async () => {
    const { client } = await begin()
    const report = defineTask('report', {
      input: z.object({ day: z.string() }),
      timeout: '30s',
      onMismatch: 'existing',
    })
    await refuses('INVALID_TASK', /input.day/)(client.schedules.create(tick({ type: report, input: {} })))
    const schedule = await client.schedules.create(
      tick({ type: report, input: { day: 'mon' }, options: { priority: 3 } }),
    )
    expect(schedule).toMatchObject({ type: 'report', options: { timeout: '30s', priority: 3 } })
  })
})

/** `before` is waited for before an insert arrives. */
const holding = (store: Store, before: () => Promise<void>): Store =>
  new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (name === 'insert')
        return async (...args: Parameters<Store['insert']>) => {
          await before()
          return target.insert(...args)
        }
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

describe('a wire that loses every third reply or request', () => {
  const CALLS: readonly StoreCall[] = ['insert', 'documents.put', 'documents.get', 'documents.list', 'get']

  for (const fate of ['lose-reply', 'drop-request'] as const satisfies readonly Fate[]) {
    it(`still has one task a slot, by ${fate}`, async () => {
      let calls = 0
      let lost = 0
      const { client, clock, another } = await begin()
      for (let n = 0; n < 3; n++) {
        const through = (store: Store): Store =>
          lossy(store, (call) => {
            if (!CALLS.includes(call) || ++calls < 10 || calls % 3 !== 0) return 'pass'
            lost++
            return fate
          })
        scheduling(await another({ through }))
      }
      await client.schedules.create(tick({ every: '1s', overlap: 'allow', catchUp: 'all' }))
      await clock.advance(300_000)
      const made = await slots(client)
      expect(lost).toBeGreaterThan(100)
      expect(made.slice(0, 290)).toEqual(Array.from({ length: 290 }, (_, k) => NOON + (k + 1) * 1_000))
    })
  }

  it('edits that lose their reply are done once', async () => {
    let next: StoreCall | null = null
    const { client, clock, passing, another } = await begin({
      through: (store) =>
        lossy(store, (call) => {
          if (call !== next) return 'pass'
          next = null
          return 'lose-reply'
        }),
    })
    const losing = <T>(call: StoreCall, work: () => Promise<T>): Promise<T> => {
      next = call
      return passing(work())
    }
    const { schedules } = await another()
    await losing('documents.put', () => client.schedules.create(tick()))
    const { incarnation } = await schedules.get('tick')
    const updated = await losing('documents.put', () =>
      client.schedules.update('tick', { overlap: 'allow', catchUp: 'all' }),
    )
    expect(updated.incarnation).not.toBe(incarnation)
    expect(await losing('documents.put', () => client.schedules.pause('tick'))).toMatchObject({ paused: true })
    expect(await losing('documents.put', () => client.schedules.resume('tick'))).toMatchObject({ paused: false })
    await losing('insert', () => client.schedules.trigger('tick'))
    expect(await all(client)).toHaveLength(1)
    await losing('documents.put', () => client.schedules.delete('tick'))
    expect(await schedules.list()).toEqual([])
    expect(clock.wall()).toBeLessThan(NOON + MINUTE)
  })

  /** One scheduler vanishes in the middle of its second submit, and another one takes over. */
  const vanishing = async (bug: (store: Store) => Store): Promise<number[]> => {
    const { client, clock, another } = await begin()
    let inserts = 0
    const through = (store: Store): Store =>
      lossy(bug(store), (call) => (call === 'insert' && inserts++ === 1 ? 'silence' : 'pass'))
    scheduling(await another({ through, vanishes: true }))
    await client.schedules.create(tick({ every: '1s', overlap: 'allow', catchUp: 'all' }))
    await clock.advance(5_500)
    scheduling(client)
    await clock.advance(3_500)
    expect(inserts).toBe(2)
    return slots(client)
  }

  /** The cursor moves when the firing is written down. */
  const cursorFirst = (store: Store): Store => {
    const { documents } = store
    const put = (name: string, value: string, version: number): Promise<number | null> => {
      const record = JSON.parse(value)
      const moved = record.firing ? { ...record, firing: null, cursor: record.firing.slots.at(-1) } : record
      return documents.put(name, JSON.stringify(moved), version)
    }
    return new Proxy(store, {
      get(target, name) {
        if (name === 'documents') return { ...documents, put }
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }

  it('and a scheduler that vanishes in mid-submit lose nothing; a cursor that moves first does: the planted bug', async () => {
    const grid = Array.from({ length: 9 }, (_, k) => NOON + (k + 1) * 1_000)
    expect(await vanishing((store) => store)).toEqual(grid)
    expect(await vanishing(cursorFirst)).not.toEqual(grid)
  })
})

describe('an outage', () => {
  it('is told once, and schedules go on, and say so, within seconds of its end', async () => {
    let away = false
    const told: string[] = []
    const { client, clock, another } = await begin()
    const write = (message: string): void => void told.push(message)
    const logger = { debug() {}, info: write, warn() {}, error: write }
    scheduling(await another({ logger, through: (store) => lossy(store, () => (away ? 'drop-request' : 'pass')) }))
    await client.schedules.create(tick({ every: '10s', overlap: 'allow', catchUp: 'last' }))
    await clock.advance(10_000)
    away = true
    await clock.advance(10 * MINUTE)
    away = false
    await clock.advance(15_000)
    const about = told.filter((message) => message.startsWith('schedules ')).map((message) => message.split(':')[0])
    expect(about).toEqual(['schedules do not fire until the store answers', 'schedules fire again'])
    const made = await slots(client)
    expect(made[0]).toBe(NOON + 10_000)
    expect(made[1]).toBeGreaterThanOrEqual(NOON + 10 * MINUTE)
    expect(made[1]).toBeLessThanOrEqual(NOON + 10 * MINUTE + 20_000)
  })

  it('of one schedule that cannot be read does not stop the others', async () => {
    const { client, clock, store } = await begin()
    await store.documents.put('schedule/broken', 'not JSON', 0)
    scheduling(client)
    await client.schedules.create(tick({ overlap: 'allow', catchUp: 'all' }))
    await clock.advance(MINUTE)
    expect(await slots(client)).toEqual([NOON + MINUTE])
  })
})
