/** Submits tasks. */
import type { SubmitManyItem, SubmitOptions } from '../../index.ts'
import { mustServe } from '../auth/callers.ts'
import type { Route } from '../route.ts'
import { errorOf } from '../wire/errors.ts'
import { encoding, payloadOf } from '../wire/payloads.ts'
import { anything, duration, listOf, ref, type Schema, shape, taskOptions, text } from '../wire/schemas.ts'

const submission: Schema = shape(
  { type: text('which handler runs it'), input: anything('any JSON value') },
  {
    ...taskOptions,
    encoding,
    id: text('any UUID; generated if omitted'),
    idempotencyKey: text('the same key returns the same task'),
    idempotencyTtl: duration,
    onMismatch: { type: 'string', enum: ['error', 'existing'] },
    coalesce: shape(
      { key: text('triggers of the same type and key are one task while it waits') },
      { delay: duration, maxWait: duration, input: { type: 'string', enum: ['latest', 'first'] } },
    ),
  },
)

type Given = SubmitOptions & { readonly type: string; readonly input: unknown; readonly encoding?: string }

const itemOf = ({ encoding: how, input, ...rest }: Given): SubmitManyItem & { readonly type: string } => ({
  ...rest,
  input: payloadOf(input, how, 'input'),
})

const MOST = 1_000

export const SUBMITTING: readonly Route[] = [
  {
    method: 'post',
    path: '/tasks',
    name: 'submitTask',
    summary: 'Submits a task. When the response arrives, the task is as durable as the store can make it',
    right: 'submit',
    body: submission,
    status: 201,
    isNotNew: ({ deduplicated, coalesced }) => deduplicated === true || coalesced === true,
    answer: ref('Task'),
    refuses: ['INVALID_TASK', 'INVALID_DURATION', 'ALREADY_EXISTS', 'IDEMPOTENCY_CONFLICT'],
    run: async ({ client, body, redaction, access }) => {
      const { type, input, ...options } = itemOf(body as unknown as Given)
      mustServe(access, options.queue)
      return redaction.task(await client.submit(type, input, options))
    },
  },
  {
    method: 'post',
    path: '/tasks/batch',
    name: 'submitTasks',
    summary: 'Submits many tasks. Each has its own result, in order; an invalid one does not stop the others',
    right: 'submit',
    body: shape({ tasks: listOf(submission, MOST) }),
    answer: shape({ results: listOf(shape({}, { task: ref('Task'), error: { type: 'object' } })) }),
    refuses: ['INVALID_TASK'],
    run: async ({ client, body, redaction, access }) => {
      const items = (body['tasks'] as readonly Given[]).map(itemOf)
      for (const { queue } of items) mustServe(access, queue)
      const results = await client.submitMany(items)
      return {
        results: await Promise.all(
          results.map(async (result) =>
            'task' in result ? { task: await redaction.task(result.task) } : { error: errorOf(result.error) },
          ),
        ),
      }
    },
  },
]
