/**
 * After an interruption, living workers must be able to renew their leases before anyone takes them. So a lease is taken only after one of its
 * lengths of unbroken contact with the store, by whatever door.
 */
import { describe, expect, it } from 'vitest'
import { type Client, HoldfastError } from '../../../src/index.ts'
import { Contact } from '../../../src/runtime/contact.ts'
import { FakeClock } from '../../../src/testing/fake-clock.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { withMethods } from '../../crash/planted.ts'
import { begin } from '../setup.ts'

type Scene = Awaited<ReturnType<typeof begin>>

/** A worker that runs a task for a minute, without retries, and a switch that cuts everybody off. */
const busy = async (scene: Scene): Promise<{ id: string; holder: Client; cut: (isAway: boolean) => void }> => {
  let isAway = false
  const holder = await scene.another({
    name: 'holder',
    through: (store) => lossy(store, () => (isAway ? 'drop-request' : 'pass')),
  })
  holder
    .worker()
    .handle('long', () => new Promise<string>((done) => scene.clock.after(60_000, () => done('finished'))))
    .start()
  const { id } = await holder.submit('long', 1, { maxRetries: 0 })
  await scene.clock.advance(1_000)
  return {
    id,
    holder,
    cut: (away) => {
      isAway = away
    },
  }
}

const statusOf = async ({ store }: Scene, id: string): Promise<string> => (await store.get([id]))[0]!.status

describe('the lease of a living worker that was cut off for longer than it lasts', () => {
  it('is not taken by a worker that started meanwhile', async () => {
    const scene = await begin()
    const { id, cut } = await busy(scene)
    cut(true)
    await scene.clock.advance(7_900)
    const newcomer = await scene.another({ name: 'newcomer' })
    newcomer
      .worker()
      .handle('long', () => 'taken')
      .start()
    await scene.clock.advance(100)
    expect(await statusOf(scene, id), 'the lease has lapsed, and the newcomer has looked').toBe('running')
    cut(false)
    await scene.clock.advance(70_000)
    expect((await newcomer.get(id)).output).toBe('finished')
  })

  it('is not taken by claimNext, nor by a claim of that very task', async () => {
    const scene = await begin()
    const { id, cut } = await busy(scene)
    cut(true)
    await scene.clock.advance(8_000)
    const caller = await scene.another({ name: 'caller' })
    expect(await caller.claimNext({ workerId: 'by hand' })).toBeNull()
    await expect(caller.claim(id, { workerId: 'by hand' })).rejects.toMatchObject({ code: 'TASK_ALREADY_CLAIMED' })
    cut(false)
    await scene.clock.advance(70_000)
    expect((await caller.get(id)).output).toBe('finished')
  })

  it('is not given up in a second outage because the handler was told of its loss in the first: in between it was renewed', async () => {
    const scene = await begin()
    const { id, cut } = await busy(scene)
    cut(true)
    await scene.clock.advance(8_000)
    cut(false)
    // A handler that ignores its signal is stuck 30 s after it was told.
    await scene.clock.advance(20_000)
    cut(true)
    await scene.clock.advance(8_000)
    cut(false)
    const newcomer = await scene.another({ name: 'newcomer' })
    newcomer
      .worker()
      .handle('long', () => 'taken')
      .start()
    await scene.clock.advance(60_000)
    expect((await newcomer.get(id)).output).toBe('finished')
  })

  it('is taken after one lease length of contact if the worker does not come back', async () => {
    const scene = await begin()
    const { id, cut } = await busy(scene)
    cut(true)
    const newcomer = await scene.another({ name: 'newcomer' })
    newcomer
      .worker()
      .handle('other', () => null)
      .start()
    await scene.clock.advance(8_000)
    expect(await statusOf(scene, id)).toBe('failed')
  })
})

it('the lease of a living worker that lapses in an outage shorter than itself is not taken by who is back first', async () => {
  const scene = await begin()
  const { id, cut } = await busy(scene)
  let isAway = false
  const other = await scene.another({
    name: 'other',
    through: (store) => lossy(store, () => (isAway ? 'drop-request' : 'pass')),
  })
  const asks = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n++) {
      const asked = other.claimNext({ workerId: 'by hand' }).catch(() => null)
      await scene.clock.advance(500)
      expect(await asked).toBeNull()
    }
  }
  await asks(20)
  // Until it is about to be renewed: it lapses soon after.
  let left = 5_000
  while (left > 3_400) {
    await asks(1)
    left = (await scene.store.get([id]))[0]!.lease!.expiresAt - scene.clock.wall()
  }
  cut(true)
  isAway = true
  await asks(8)
  isAway = false
  await asks(4)
  cut(false)
  await scene.clock.advance(5_000)
  expect(await statusOf(scene, id)).toBe('running')
})

/** Also of a store that suggests longer leases, as S3 does: what counts is how long the lease is. */
it.each([5_000, 30_000])(
  'a call that took long was a break: what it brought is not taken (the store suggests %i ms)',
  async (leaseTtl) => {
    const scene = await begin()
    const { id, cut } = await busy(scene)
    let delay = 0
    const slow = await scene.another({
      name: 'slow',
      through: (store) =>
        withMethods(store, {
          leaseTtl,
          claim: async (want) => {
            if (delay > 0) await new Promise<void>((done) => scene.clock.after(delay, done))
            return store.claim(want)
          },
        }),
    })
    slow
      .worker({ pollInterval: '1s' })
      .handle('other', () => null)
      .start()
    await scene.clock.advance(6_000)
    // As a table that somebody has locked: everybody waits, and then everybody goes on at once.
    cut(true)
    delay = 8_000
    await scene.clock.advance(9_000)
    expect(await statusOf(scene, id)).toBe('running')
    cut(false)
    delay = 0
    await scene.clock.advance(4_000)
    expect(await statusOf(scene, id)).toBe('running')
  },
)

it('a conflict is an answer: a worker that meets others at every other look still takes the lease of a dead one', async () => {
  const scene = await begin()
  await scene.client.submit('work', 1, { maxRetries: 0 })
  const { task } = (await scene.client.claimNext({ workerId: 'dead' }))!
  let looks = 0
  const conflict = new HoldfastError('STORE_UNAVAILABLE', 'two writers', { isConflict: true })
  const crowded = await scene.another({
    name: 'crowded',
    through: (store) =>
      withMethods(store, { claim: (want) => (looks++ % 2 === 0 ? store.claim(want) : Promise.reject(conflict)) }),
  })
  crowded
    .worker({ pollInterval: '1s' })
    .handle('work', () => null)
    .start()
  await scene.clock.advance(15_000)
  expect(await statusOf(scene, task.id)).toBe('failed')
})

it('a conflict of documents is an answer, too: contact goes on', async () => {
  const clock = new FakeClock()
  const contact = new Contact(clock)
  await clock.advance(10_000)
  const conflict = new HoldfastError('STORE_UNAVAILABLE', 'two writers', { isConflict: true })
  await expect(contact.notice(Promise.reject(conflict))).rejects.toBe(conflict)
  expect(contact.hasLasted(10_000)).toBe(true)
  const outage = new HoldfastError('STORE_UNAVAILABLE', 'no answer')
  await expect(contact.notice(Promise.reject(outage))).rejects.toBe(outage)
  expect(contact.hasLasted(10_000)).toBe(false)
})

it('a suspension is noticed by the first call after it, also if that comes before the timer', async () => {
  const clock = new FakeClock()
  // Timers that are due at once fire in any order: that of the pulse has not fired yet.
  const contact = new Contact({ wall: () => clock.wall(), mono: () => clock.mono(), after: () => () => {} })
  for (let looks = 0; looks < 40; looks++) {
    await clock.advance(500)
    await contact.watch(async () => {})
  }
  contact.noticeSuspension()
  expect(contact.hasLasted(5_000)).toBe(true)
  // Less than a lease of 5 s: the silence alone would not tell.
  await clock.advance(4_300)
  await contact.watch(async () => {})
  expect(contact.hasLasted(5_000)).toBe(false)
  expect(contact.hasLasted(20_000), 'longer leases were not concerned').toBe(true)
})

it('a monitor alone takes the lease of a dead worker where it must look at each queue, although it seldom looks', async () => {
  const scene = await begin()
  await scene.client.submit('work', 1, { maxRetries: 0 })
  const { task } = (await scene.client.claimNext({ workerId: 'dead' }))!
  const watcher = await scene.another({
    name: 'watcher',
    through: (store) =>
      withMethods(store, {
        capabilities: new Set([...store.capabilities].filter((name) => name !== 'due-of-all-queues')),
      }),
  })
  watcher.monitor().start()
  await scene.clock.advance(70_000)
  expect(await statusOf(scene, task.id)).toBe('failed')
})

it('a monitor that stood still while everybody else did takes nothing when all go on', async () => {
  const scene = await begin()
  const { id, cut } = await busy(scene)
  let late = 0
  const clock = {
    wall: () => scene.clock.wall(),
    mono: () => scene.clock.mono(),
    after: (delay: number, tick: () => void) => scene.clock.after(delay + late, tick),
  }
  const watcher = await scene.another({ name: 'watcher', clock })
  watcher.monitor().start()
  await scene.clock.advance(5_600)
  cut(true)
  // For less than a lease length: the silence alone would not tell.
  late = 2_500
  await scene.clock.advance(5_000)
  expect((await watcher.get(id)).lease!.expiresAt, 'the lease has lapsed').toBeLessThan(scene.clock.wall())
  expect(await statusOf(scene, id)).toBe('running')
  late = 0
  cut(false)
  await scene.clock.advance(70_000)
  expect((await watcher.get(id)).output).toBe('finished')
})

const ASKS = {
  claimNext: (caller: Client) => caller.claimNext({ workerId: 'by hand', types: ['other'] }),
  claim: (caller: Client, id: string) => caller.claim(id, { workerId: 'by hand' }).catch(() => null),
}

describe.each(['claimNext', 'claim'] as const)(
  'a loop of %s that was suspended together with the holder, for less than a lease',
  (way) => {
    /** Beats of the loop: every timer of the caller is late by what `late` says, as after SIGSTOP and SIGCONT. */
    const suspended = async (worked: number) => {
      const scene = await begin()
      const { id, cut } = await busy(scene)
      let late = 0
      let used = 0
      const caller = await scene.another({
        name: 'caller',
        clock: {
          wall: () => scene.clock.wall(),
          mono: () => scene.clock.mono(),
          after: (delay, tick) => scene.clock.after(delay + late, tick),
          processorTime: () => used,
        },
      })
      const looks = async (count: number): Promise<void> => {
        for (let i = 0; i < count; i++) {
          await scene.clock.advance(500)
          await ASKS[way](caller, id)
        }
      }
      await looks(12)
      // The holder has renewed within a third of its lease of 5 s. It and the caller stand still for less than a lease.
      cut(true)
      late = 4_300
      await scene.clock.advance(4_300)
      used += worked
      late = 0
      return { scene, id, cut, caller, looks }
    }

    it('takes nothing when all go on', async () => {
      const { scene, id, cut, caller, looks } = await suspended(0)
      await looks(1)
      const { lease, status } = (await scene.store.get([id]))[0]!
      expect(lease!.expiresAt, 'it has lapsed').toBeLessThan(scene.clock.wall())
      expect(status).toBe('running')
      await looks(3)
      expect(await statusOf(scene, id)).toBe('running')
      cut(false)
      await scene.clock.advance(70_000)
      expect((await caller.get(id)).output).toBe('finished')
    })

    it('takes what has lapsed if it computed meanwhile: it saw the store all the time', async () => {
      const { scene, id, looks } = await suspended(4_300)
      await looks(1)
      expect(await statusOf(scene, id)).toBe('failed')
    })
  },
)
