/** How a SQLite store notices that another process has written: by the kernel's report, and by polling where there is none. */
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Watch } from '../../src/store/sqlite/watch.ts'

beforeEach(() => {
  // What polls stands still unless a test moves it; the kernel's reports come as ever.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const begin = ({ hasLog = true, committedAt = Number.NEGATIVE_INFINITY } = {}) => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-watch-'))
  folders.push(folder)
  const log = join(folder, 'file.db-wal')
  if (hasLog) writeFileSync(log, '')
  const state = { version: 1, asked: 0, changes: 0 }
  const watched = {
    log,
    version: () => {
      state.asked++
      return state.version
    },
    committedAt: () => committedAt,
  }
  const watch = new Watch(watched, () => state.changes++)
  watch.set(true)
  return { state, watch, write: () => appendFileSync(log, 'x') }
}

/** Turns of the event loop, until it is so; the test times out if it never is. */
const eventually = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((done) => setImmediate(done))
}

test('a commit of another process is noticed when the kernel reports its write', async () => {
  const { state, watch, write } = begin()
  state.version = 2
  write()
  await eventually(() => state.changes === 1)
  watch.set(false)
})

test('a write that is not committed yet is polled for until it is', async () => {
  const { state, watch, write } = begin()
  write()
  await eventually(() => state.asked > 1)
  expect(state.changes).toBe(0)
  state.version = 2
  await vi.advanceTimersByTimeAsync(1)
  expect(state.changes).toBe(1)
  watch.set(false)
})

test('without a report the file is polled, often only where the kernel cannot report', async () => {
  const [helped, alone] = [begin(), begin({ hasLog: false })]
  for (const { state } of [helped, alone]) state.version = 2
  await vi.advanceTimersByTimeAsync(60)
  expect([helped.state.changes, alone.state.changes]).toEqual([0, 1])
  await vi.advanceTimersByTimeAsync(500)
  expect([helped.state.changes, alone.state.changes]).toEqual([1, 1])
  helped.watch.set(false)
  alone.watch.set(false)
})

test('what is switched off notices nothing', async () => {
  const { state, watch, write } = begin()
  watch.set(false)
  state.version = 2
  write()
  await vi.advanceTimersByTimeAsync(2_000)
  expect(state.changes).toBe(0)
})
