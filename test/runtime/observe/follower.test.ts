/** What a follower must remember: a process that follows for weeks must not grow with each task that it has seen. */
import { expect, test } from 'vitest'
import { Follower } from '../../../src/runtime/observe/follower.ts'
import type { Session } from '../../../src/runtime/session.ts'
import { begin } from '../setup.ts'

test('remembers the tasks of the last seconds only, and still tells each change of an older one once', async () => {
  const { client, store, clock } = await begin()
  const time = { now: () => clock.wall(), isOld: false, uncertainty: 0 }
  const follower = new Follower({ store, clock, time } as unknown as Session, {}, clock.wall())
  const told: string[] = []
  const poll = async (): Promise<void> => {
    for await (const changes of follower.poll({ most: Number.POSITIVE_INFINITY, isFirstLong: true }))
      told.push(...changes.map(({ task, entry }) => `${task.type}:${entry.move}`))
  }
  await poll()
  const first = await client.submit('first', null)
  for (let second = 0; second < 300; second++) {
    await clock.advance(1_000)
    await client.submit('mail', second)
    await poll()
  }
  // Twenty seconds, five between two searches for late changes, and a few to spare.
  expect(follower.remembered).toBeLessThan(40)
  await client.cancel(first.id)
  await clock.advance(1_000)
  await poll()
  await clock.advance(30_000)
  await poll()
  expect(told.filter((one) => one === 'mail:submit')).toHaveLength(300)
  expect(told.filter((one) => one.startsWith('first'))).toEqual(['first:submit', 'first:cancel'])
})
