/** A later release may change the defaults of submit. What is stored already must not change with them. */
import { afterAll, expect, test, vi } from 'vitest'

const LATER = { base: 9_000, multiplier: 3, max: 90_000, jitter: 'none' } as const
const [SUBMISSION, RETRY] = ['../../../src/core/submission.ts', '../../../src/core/retry.ts']

vi.resetModules()
vi.doMock(SUBMISSION, async (original) => {
  const module = await original<typeof import('../../../src/core/submission.ts')>()
  return { ...module, DEFAULTS: { ...module.DEFAULTS, maxRetries: 9, timeout: 9 } }
})
vi.doMock(RETRY, async (original) => ({
  ...(await original<typeof import('../../../src/core/retry.ts')>()),
  DEFAULT_RETRY_POLICY: LATER,
}))
// The modules of this file are not those of the next.
afterAll(() => {
  vi.doUnmock(SUBMISSION)
  vi.doUnmock(RETRY)
  vi.resetModules()
})

const { Task } = await import('../../../src/core/observe/task-view.ts')
const { backoff } = await import('../../../src/core/retry.ts')
const { STORED_DEFAULTS } = await import('../../../src/core/storage/stored-defaults.ts')
const { newSubmission } = await import('../../../src/core/submission.ts')
const { decodeOptions } = await import('../../../src/store/sql/rows.ts')

const submitted = () =>
  newSubmission('work', { text: '1', encoding: 'json' }, {}, { now: 1, id: 'a', op: 'op', by: 'me' }).task

test('what a stored task means by a field that it leaves out never changes', () => {
  expect(STORED_DEFAULTS).toEqual({
    maxRetries: 3,
    timeout: 300_000,
    retryPolicy: { base: 500, multiplier: 2, max: 30_000, jitter: 'full' },
  })
})

test('a row without options has the limits that it was stored with, whatever submit gives new tasks', () => {
  expect(decodeOptions(null)).toMatchObject({ maxRetries: 3, timeout: 300_000, retryPolicy: null })
  expect(decodeOptions('{"timeout":null}')).toMatchObject({ maxRetries: 3, timeout: null })
})

test('a stored task without a policy keeps the backoff that it was stored with', () => {
  expect(backoff(null, 0, 0.5)).toBe(250)
  expect(new Task({ ...submitted(), retryPolicy: null }).retryPolicy.base).toBe(500)
})

test('a task that is submitted under other defaults stores what is in force', () => {
  expect(submitted().retryPolicy).toEqual(LATER)
})
