/** The new task that stands in for a dead one when it is replayed as new. */
import { newSubmission, type Submission, type SubmitFacts } from './submission.ts'
import type { Instant, TaskRecord } from './task.ts'

/** The same for every try of the same replay: whoever repeats it finds the task that the first try made. */
const replacementKey = ({ id, replayCount }: Pick<TaskRecord, 'id' | 'replayCount'>): string =>
  `replay:${id}:${replayCount + 1}`

/** The same work with the same limits, under a new id and a whole budget, due at once. */
export const replacementOf = (
  dead: TaskRecord,
  facts: Omit<SubmitFacts, 'reserved'>,
  expiresAt: Instant | null,
): Submission => {
  const { type, input, encoding, queue, priority, maxRetries, maxReschedules, retryPolicy, timeout, tags } = dead
  const reserved = { key: replacementKey(dead), replayOf: dead.id }
  const { task, key } = newSubmission(type, { text: input, encoding }, expiresAt === null ? {} : { expiresAt }, {
    ...facts,
    reserved,
  })
  return { task: { ...task, queue, priority, maxRetries, maxReschedules, retryPolicy, timeout, tags }, key }
}
