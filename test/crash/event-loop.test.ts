/** The store has a thread of its own: a locked file does not stop the event loop, nor a stopped event loop the leases. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import type { Plant } from './planted.ts'
import { cleanUp, folder, start } from './processes.ts'
import { report } from './seed.ts'

cleanUp()

const HELD = 2_000
const LEASE = 700

const standBy = async (onMainThread: boolean): Promise<{ took: number; longest: number }> => {
  const file = join(folder(), 'locked.db')
  const bystander = start('bystander', { file, onMainThread })
  await bystander.heard('ready')
  const holder = start('lock-holder', { file, holds: HELD })
  await holder.heard('locked')
  bystander.signal('SIGUSR2')
  const done = (await bystander.heard('done')) as unknown as { took: number; longest: number }
  await Promise.all([bystander.end(), holder.end()])
  return done
}

test('while another process holds the write lock for 2 s, the event loop goes on and the calls succeed', async () => {
  const longest: number[] = []
  // The machine itself may make a process wait; a store that blocks would do so every time.
  while (longest.length < 3 && !longest.some((ms) => ms < 50)) {
    const done = await standBy(false)
    expect(done.took).toBeGreaterThan(HELD / 2)
    longest.push(done.longest)
  }
  report(
    `event loop: longest stop ${longest.map((ms) => ms.toFixed(1)).join(', ')} ms while the file was locked for ${HELD} ms`,
  )
  expect(Math.min(...longest)).toBeLessThan(50)
})

test('a store on the main thread would be noticed', async () => {
  const { longest } = await standBy(true)
  report(`event loop: longest stop ${longest.toFixed(1)} ms with a store on the main thread`)
  expect(longest).toBeGreaterThan(HELD / 2)
})

const block = async (plant: Plant) => {
  const place = folder()
  const file = join(place, 'block.db')
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  const leaseTtl = `${LEASE}ms`
  const other = start('worker', { file, folder: place, seed: 1, takes: [0, 0], leaseTtl, barrier: true })
  await other.heard('ready')
  const blocker = start('blocker', { file, leaseTtl, blocks: 3 * LEASE, plant })
  await blocker.heard('ready')
  const { id } = await client.submit('work', null, { retryPolicy: { base: '10ms', max: '10ms' } })
  await blocker.heard('started')
  other.signal('SIGUSR2')
  const { code } = await blocker.heard('ended')
  const task = await client.waitForEnd(id)
  await client.close()
  return { code, task, moves: task.history.map(({ move }) => move) }
}

test('a handler that blocks the event loop for three lease lengths keeps its lease', async () => {
  const { code, task, moves } = await block('none')
  expect(code).toBe('written')
  expect(moves).toEqual(['submit', 'claim', 'complete'])
  expect(task.attempts).toBe(1)
})

for (const plant of ['no-keeper', 'idle-keeper'] as const) {
  test(`it is the store's thread that keeps it: with the bug '${plant}' the lease is lost`, async () => {
    const { code, task, moves } = await block(plant)
    expect(code).toBe('STALE_LEASE')
    expect(moves).toContain('lose-lease')
    expect(task.attempts).toBe(2)
  })
}
