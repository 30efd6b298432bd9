/** A task as submit makes it, for tests of the rules. */
import { newSubmission, type SubmitOptions } from '../../src/core/submission.ts'
import type { TaskRecord } from '../../src/core/task.ts'

export const NOW = Date.UTC(2026, 0, 28, 12)
export const ID = '01900000-0000-7000-8000-000000000001'

export const submission = (options: SubmitOptions = {}, type = 'work', now = NOW) =>
  newSubmission(type, { text: '{}', encoding: 'json' }, options, { now, id: ID, op: 'submit', by: 'test' })

export const fresh = (options: SubmitOptions = {}): TaskRecord => submission(options).task
