/** The store has a thread of its own: a locked file does not stop the event loop, nor a stopped event loop the leases. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { block } from './blocking.ts'
import { cleanUp, folder, start } from './processes.ts'
import { report } from './seed.ts'

cleanUp()

const HELD = 2_000

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

test('a handler that blocks the event loop for three lease lengths keeps its lease', async () => {
  const { code, task, moves } = await block(join(folder(), 'block.db'), 'none')
  expect(code).toBe('written')
  expect(moves).toEqual(['submit', 'claim', 'complete'])
  expect(task.attempts).toBe(1)
})

for (const plant of ['no-keeper', 'idle-keeper'] as const) {
  test(`it is the store's thread that keeps it: with the bug '${plant}' the lease is lost`, async () => {
    const { code, task, moves } = await block(join(folder(), 'block.db'), plant)
    expect(code).toBe('STALE_LEASE')
    expect(moves).toContain('lose-lease')
    expect(task.attempts).toBe(2)
  })
}
