/** The new task that replaces a dead one when it is replayed as new. */
import { newSubmission, type Submission, type SubmitFacts } from '../submission.ts'
import type { Instant, TaskRecord } from '../task.ts'

/** The same for every attempt of the same replay, so that a repeat finds the task of the first attempt. */
const replacementKey = ({ id, replayCount }: Pick<TaskRecord, 'id' | 'replayCount'>): string =>
  `replay:${id}:${replayCount + 1}`

/** The same work with the same limits, a new id and a full retry budget, due at once. */
export const replacementOf = (
  dead: TaskRecord,
  facts: Omit<SubmitFacts, 'reserved'>,
  expiresAt: Instant | null,
): Submission => {
  const { type, input, encoding, queue, priority, group, maxRetries, maxReschedules, retryPolicy, timeout, tags } = dead
  const reserved = { key: replacementKey(dead), replayOf: dead.id }
  const { task, key } = newSubmission(type, { text: input, encoding }, expiresAt === null ? {} : { expiresAt }, {
    ...facts,
    reserved,
  })
  return { task: { ...task, queue, priority, group, maxRetries, maxReschedules, retryPolicy, timeout, tags }, key }
}
