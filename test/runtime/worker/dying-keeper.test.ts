/** A thread that renews leases, and dies: every store that has one depends on this. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { KeeperReport } from '../../../src/store/store.ts'
import { LeaseBoard } from '../../../src/store/threads/lease-board.ts'
import { threadedKeeper } from '../../../src/store/threads/threaded-keeper.ts'

test('the thread that takes its place is told what is held, and renews it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-keeper-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const mark = join(folder, 'mark')
  const board = LeaseBoard.withSlots(2)
  const lease = { slot: 1, id: 'task', token: 'token' }
  const reports: KeeperReport[] = []
  board.wait(1)
  board.start(1, null)
  const warnings: string[] = []
  const beside = new URL('./dying-keeper/here.ts', import.meta.url).href
  const start = threadedKeeper({ beside, name: 'dying', place: mark, settings: 'none' }, (text) => warnings.push(text))!
  const keeper = start({
    workerId: 'worker',
    board,
    leaseTtl: 300,
    every: 100,
    held: () => [lease],
    report: (results) => void reports.push(...results),
  })
  onTestFinished(() => keeper.close())
  keeper.hold([lease], systemClock.mono())
  await expect.poll(() => reports, { timeout: 20_000 }).toContainEqual({ slot: 1, token: 'token', renewed: 'held' })
  expect(existsSync(mark)).toBe(true)
})
