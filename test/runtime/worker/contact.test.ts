/**
 * After an interruption, living workers must be able to renew their leases before anyone takes them. So a lease is taken only after one of its
 * lengths of unbroken contact with the store, by whatever door.
 */
import { describe, expect, it } from 'vitest'
import type { Client } from '../../../src/index.ts'
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
