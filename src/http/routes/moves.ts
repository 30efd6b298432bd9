/** What an operator does with one task. */
import type { ReplayOptions, Task } from '../../index.ts'
import { reason } from '../payloads.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
import { duration, flag, ref, type Schema, shape } from '../schemas.ts'

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
  run: async (call) => call.showing.task(await move(call, call.params['id']!)),
})

const replay: Move = async ({ client, body, signal }, id) => {
  const { results } = await client.deadLetters.replay(id, { ...(body as ReplayOptions), signal })
  const [result] = results
  if (result === undefined || 'error' in result) throw result?.error ?? new Error('a replay without a result')
  return result.task
}

export const MOVES: readonly Route[] = [
  moving(
    'cancel',
    'A pending task is cancelled, a running one asked to stop',
    ['CANNOT_CANCEL'],
    ({ client, body }, id) => client.cancel(id, body as { reason?: string }),
    shape({}, { reason }),
  ),
  moving(
    'retry',
    'A failed task with retries left, a cancelled one, or a running one, which loses its lease',
    ['CANNOT_RETRY', 'MAX_ATTEMPTS_REACHED'],
    ({ client }, id) => client.retry(id),
  ),
  moving(
    'replay',
    'A dead letter runs again, with all its retries',
    ['CANNOT_REPLAY'],
    replay,
    shape({}, { asNew: flag('as a new task; the old one is archived'), ttl: duration }),
  ),
  moving('archive', 'Hidden from default lists', ['TASK_NOT_TERMINAL'], ({ client }, id) => client.archive(id)),
  moving('unarchive', 'Back to the status before archive', ['CANNOT_UNARCHIVE'], ({ client }, id) =>
    client.unarchive(id),
  ),
  moving('expire', 'A pending task expires now', ['CANNOT_EXPIRE'], ({ client }, id) => client.markExpired(id)),
  {
    method: 'delete',
    path: '/tasks/{id}',
    name: 'deleteTask',
    summary: 'A task that has ended, and its idempotency key, are gone',
    right: 'operate',
    answer: null,
    refuses: ['TASK_NOT_FOUND', 'TASK_NOT_TERMINAL'],
    run: ({ client, params }) => client.delete(params['id']!),
  },
]
