/** A later release may change the defaults of submit. What is stored already must not change with them. */
import { expect, test, vi } from 'vitest'
import { backoff } from '../../src/core/retry.ts'
import { STORED_DEFAULTS } from '../../src/core/stored-defaults.ts'
import { newSubmission } from '../../src/core/submission.ts'
import { Task } from '../../src/core/task-view.ts'
import { decodeOptions } from '../../src/store/sql/rows.ts'

const LATER = vi.hoisted(() => ({ base: 9_000, multiplier: 3, max: 90_000, jitter: 'none' }) as const)

vi.mock('../../src/core/submission.ts', async (original) => {
  const module = await original<typeof import('../../src/core/submission.ts')>()
  return { ...module, DEFAULTS: { ...module.DEFAULTS, maxRetries: 9, timeout: 9 } }
})
vi.mock('../../src/core/retry.ts', async (original) => ({
  ...(await original<typeof import('../../src/core/retry.ts')>()),
  DEFAULT_RETRY_POLICY: LATER,
}))

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
