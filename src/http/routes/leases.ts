/** The worker's side, for other languages: claim, keep, finish. The token of a claim is what every later call must show. */
import { type Duration, HoldfastError, PermanentError, parseDuration, type Task, type TaskLease } from '../../index.ts'
import { encoding, payloadOf } from '../payloads.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
import { anything, duration, flag, instant, listOf, ref, type Schema, shape, text, whole } from '../schemas.ts'
import type { Showing } from '../showing.ts'

const lease = shape({
  task: ref('Task'),
  token: text('show it when you renew or finish; tell it to nobody'),
  workerId: text(),
  fence: whole('grows with every claim: for your own guarded writes elsewhere'),
  expiresAt: instant,
  heartbeatEvery: whole('milliseconds: renew this often'),
})

const shown = async ({ task, token, workerId, fence }: TaskLease, showing: Showing): Promise<object> => {
  const { claimedAt, expiresAt } = task.lease!
  return {
    task: await showing.claimed(task),
    token,
    workerId,
    fence,
    expiresAt: new Date(expiresAt).toISOString(),
    heartbeatEvery: Math.max(1, Math.floor((expiresAt - claimedAt) / 3)),
  }
}

const MOST = 100
const LONGEST_WAIT = 30_000

interface Wish {
  readonly workerId: string
  readonly queues?: readonly string[]
  readonly types?: readonly string[]
  readonly leaseTtl?: Duration
  readonly limit?: number
  readonly wait?: Duration
}

const claim: JsonRoute['run'] = async (call) => {
  const { claims, body, showing } = call
  const { limit = 1, wait = 0, queues = ['default'], ...options } = body as unknown as Wish
  if (limit < 1 || limit > MOST || queues.length === 0)
    throw new HoldfastError('INVALID_OPTION', `limit must be 1 to ${MOST}, and queues must name one`, {
      field: 'limit',
    })
  const patience = Math.min(parseDuration(wait, 'wait'), LONGEST_WAIT)
  const leases = await claims.some({ ...options, queues, limit, patience }, () => call.signal)
  return { leases: await Promise.all(leases.map((one) => shown(one, showing))) }
}

type Finish = (held: TaskLease, call: Call) => Promise<Task>

/** Under the token alone: who shows it is the holder. */
const finishing = (
  name: string,
  summary: string,
  finish: Finish,
  required: Readonly<Record<string, Schema>> = {},
  optional: Readonly<Record<string, Schema>> = {},
): JsonRoute => ({
  method: 'post',
  path: `/tasks/{id}/${name}`,
  name: `${name}Task`,
  summary,
  right: 'work',
  body: shape({ token: text('of the claim'), ...required }, optional),
  answer: shape({ id: text(), status: text(), availableAt: instant, attempts: whole() }),
  refuses: ['TASK_NOT_FOUND', 'STALE_LEASE'],
  run: async (call) => {
    const { id, status, availableAt, attempts } = await finish(await heldBy(call), call)
    return { id, status, availableAt: new Date(availableAt).toISOString(), attempts }
  },
})

const heldBy = ({ client, params, body }: Call): Promise<TaskLease> =>
  client.lease(params['id']!, { token: body['token'] as string })

interface Failure {
  readonly error: { readonly name?: string; readonly message: string; readonly stack?: string }
  readonly permanent?: boolean
}

/** As the handler elsewhere told it; nothing of this process. */
const errorOf = ({ error: { name = 'Error', message, stack = '' }, permanent }: Failure): Error => {
  const error = permanent ? new PermanentError(message) : new Error(message)
  return Object.defineProperties(error, { name: { value: name }, stack: { value: stack } })
}

export const LEASES: readonly Route[] = [
  {
    method: 'post',
    path: '/claim',
    name: 'claim',
    summary: 'The next due tasks, each under a lease; an empty list when there are none',
    right: 'work',
    body: shape(
      { workerId: text('unique for each start of each worker') },
      {
        queues: listOf(text(), 20),
        types: listOf(text(), 200),
        limit: whole(`1 to ${MOST}; 1 when left out`),
        leaseTtl: duration,
        wait: anything('how long to wait for work, as a duration of up to 30 s; 0 when left out'),
      },
    ),
    answer: shape({ leases: listOf(lease) }),
    refuses: ['INVALID_WORKER_ID', 'INVALID_DURATION'],
    run: claim,
  },
  {
    method: 'post',
    path: '/tasks/{id}/claim',
    name: 'claimTask',
    summary: 'This very task. The same worker again gets the same lease',
    right: 'work',
    body: shape({ workerId: text() }, { leaseTtl: duration }),
    answer: lease,
    refuses: [
      'TASK_NOT_FOUND',
      'TASK_ALREADY_CLAIMED',
      'TASK_NOT_AVAILABLE',
      'TASK_EXPIRED',
      'QUEUE_PAUSED',
      'TASK_COMPLETED',
      'TASK_FAILED',
      'TASK_CANCELLED',
      'TASK_ARCHIVED',
      'INVALID_WORKER_ID',
    ],
    run: async ({ client, params, body, showing }) =>
      shown(await client.claim(params['id']!, body as unknown as Wish), showing),
  },
  {
    method: 'post',
    path: '/tasks/{id}/heartbeat',
    name: 'heartbeatTask',
    summary: 'Keeps the lease for another while, and tells whether somebody asked the task to stop',
    right: 'work',
    body: shape(
      { token: text('of the claim') },
      { progress: anything('any JSON value'), leaseTtl: anything('as it was claimed with; a duration') },
    ),
    answer: shape({ cancelRequested: flag() }),
    refuses: ['TASK_NOT_FOUND', 'STALE_LEASE'],
    run: async (call) => {
      const { token: _, ...options } = call.body
      return (await heldBy(call)).renew(options as { leaseTtl?: Duration })
    },
  },
  finishing(
    'complete',
    'Done, with an output. A repeat with the same token is a success',
    (held, { body: { output = null, encoding: how } }) => held.complete(payloadOf(output, how, 'output')),
    {},
    { output: anything('any JSON value; null when left out'), encoding },
  ),
  finishing(
    'fail',
    'Retried after a backoff, or dead when no retries are left or `permanent`',
    (held, { body }) => held.fail(errorOf(body as unknown as Failure)),
    { error: shape({ message: text() }, { name: text(), stack: text() }) },
    { permanent: flag('no retry') },
  ),
  finishing(
    'reschedule',
    'A durable sleep: pending again, due after the delay; costs no retry',
    (held, { body: { delay, extendExpiration } }) =>
      held.reschedule(
        delay as Duration,
        extendExpiration === undefined ? {} : { extendExpiration: extendExpiration as Duration },
      ),
    { delay: duration },
    { extendExpiration: duration },
  ),
  finishing('release', 'Pending again as if it had not been claimed', (held) => held.release()),
]
