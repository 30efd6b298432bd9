/** Moves of one task by an operator. */
import type { AmendOptions, ReplayOptions, Task } from '../../index.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
import { encoding, payloadOf, reason } from '../wire/payloads.ts'
import { anything, duration, flag, ref, type Schema, shape, taskOptions, text } from '../wire/schemas.ts'

type Move = (call: Call, id: string) => Promise<Task>

const moving = (
  name: string,
  summary: string,
  refuses: NonNullable<Route['refuses']>,
  move: Move,
  body: Schema = shape({}),
): JsonRoute => ({
  method: 'post',
  path: `/tasks/{id}/${name}`,
  name: `${name}Task`,
  summary,
  right: 'operate',
  body,
  answer: ref('Task'),
  refuses: ['TASK_NOT_FOUND', ...refuses],
  run: async (call) => call.redaction.task(await move(call, call.params['id']!)),
})

const replay: Move = async ({ client, body, signal }, id) => {
  const { results } = await client.deadLetters.replay(id, { ...(body as ReplayOptions), signal })
  const [result] = results
  if (result === undefined || 'error' in result) throw result?.error ?? new Error('a replay without a result')
  return result.task
}

const amend: Move = ({ client, body }, id) => {
  const { encoding: how, ...options } = body as AmendOptions & { encoding?: unknown }
  return client.amend(id, 'input' in options ? { ...options, input: payloadOf(options.input, how, 'input') } : options)
}

interface SignalBody {
  readonly name: string
  readonly value?: unknown
  readonly encoding?: unknown
  readonly signalId?: string
}

const { priority, at, delay, ttl } = taskOptions
const AMENDMENT: Readonly<Record<string, Schema>> = {
  priority: priority!,
  at: at!,
  delay: delay!,
  ttl: ttl!,
  expiresAt: anything('not from this instant on; null: it never expires'),
  input: anything('in place of the input that it was submitted with'),
  encoding,
  group: { type: ['string', 'null'], description: 'null: it has no group' },
  tags: { type: ['object', 'null'] },
}

export const MOVES: readonly Route[] = [
  moving(
    'cancel',
    'Cancels a pending task, or asks a running one to stop',
    ['CANNOT_CANCEL'],
    ({ client, body }, id) => client.cancel(id, body as { reason?: string }),
    shape({}, { reason }),
  ),
  moving(
    'retry',
    'Retries a failed task with retries left, a cancelled one, or a running one, which loses its lease',
    ['CANNOT_RETRY', 'MAX_ATTEMPTS_REACHED'],
    ({ client }, id) => client.retry(id),
  ),
  moving(
    'replay',
    'Runs a dead letter again, with a new retry budget',
    ['CANNOT_REPLAY'],
    replay,
    shape(
      {},
      {
        asNew: flag('create a new task without steps; the old one is archived'),
        fresh: flag('forget the recorded steps and the signals'),
        ttl: duration,
      },
    ),
  ),
  moving('amend', 'Changes a waiting task', ['CANNOT_AMEND', 'TASK_MOVED'], amend, shape({}, AMENDMENT)),
  moving('run-now', 'Makes a waiting task due at once', ['CANNOT_AMEND', 'TASK_MOVED'], ({ client }, id) =>
    client.runNow(id),
  ),
  {
    method: 'post',
    path: '/tasks/{id}/signal',
    name: 'signalTask',
    summary: 'Sends a signal to a task that is pending or running; a task that waits for it is due at once',
    right: 'signal',
    body: shape(
      { name: text('what the handler waits for') },
      {
        value: anything('any JSON value; default: none'),
        encoding,
        signalId: text('names this signal: a repeat with the same id is kept once'),
      },
    ),
    answer: ref('Task'),
    refuses: ['TASK_NOT_FOUND', 'TASK_ENDED', 'TASK_MOVED', 'TOO_MANY_SIGNALS', 'STORE_CONFLICT'],
    run: async ({ client, params, body, redaction }) => {
      const { name, value, encoding: how, ...options } = body as unknown as SignalBody
      return redaction.task(await client.signal(params['id']!, name, payloadOf(value, how, 'value'), options))
    },
  },
  moving('archive', 'Hides an ended task from default lists', ['TASK_NOT_TERMINAL'], ({ client }, id) =>
    client.archive(id),
  ),
  moving('unarchive', 'Restores the status before archive', ['CANNOT_UNARCHIVE'], ({ client }, id) =>
    client.unarchive(id),
  ),
  moving('expire', 'Expires a pending task now', ['CANNOT_EXPIRE'], ({ client }, id) => client.markExpired(id)),
  {
    method: 'delete',
    path: '/tasks/{id}',
    name: 'deleteTask',
    summary: 'Removes an ended task and its idempotency key',
    right: 'operate',
    answer: null,
    refuses: ['TASK_NOT_FOUND', 'TASK_NOT_TERMINAL'],
    run: ({ client, params }) => client.delete(params['id']!),
  },
]
