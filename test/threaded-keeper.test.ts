/** Where leases cannot be renewed on a thread of their own, the user is warned: on every store by the same function. */
import { expect, test } from 'vitest'
import { threadedKeeper } from '../src/store/threads/threaded-keeper.ts'

const STORE = new URL('../src/store/s3/store.ts', import.meta.url).href

const warningsOf = (beside: string, place: unknown): { warnings: string[]; isThreaded: boolean } => {
  const warnings: string[] = []
  const keeper = threadedKeeper({ beside, name: 'test', place, settings: 'the credentials' }, (message) =>
    warnings.push(message),
  )
  return { warnings, isThreaded: keeper !== undefined }
}

test('a thread whose file is there and whose settings can be copied is used without a word', () => {
  expect(warningsOf(STORE, { bucket: 'tasks' })).toEqual({ warnings: [], isThreaded: true })
})

test('settings with functions are named in a warning that says what a busy event loop can cost', () => {
  const { warnings, isThreaded } = warningsOf(STORE, { credentials: () => ({}) })
  expect(isThreaded).toBe(false)
  expect(warnings).toEqual([
    'leases are renewed on the event loop, so a handler that computes for long can lose its lease: the credentials have functions, which cannot be passed to another thread',
  ])
})

test('a bundle without the file of the thread gets a warning with the settings of the bundlers', () => {
  const { warnings, isThreaded } = warningsOf('file:///app/bundle.js', {})
  expect(isThreaded).toBe(false)
  expect(warnings[0]).toMatch(/can lose its lease: .*esbuild --external:holdfast/)
})
