/** The worker API for other languages: claim, renew, finish. Every later call must present the token of the claim. */
import {
  type Duration,
  type ErrorFacts,
  HoldfastError,
  PermanentError,
  parseDuration,
  type RescheduleOptions,
  RetryableError,
  type Task,
  type TaskLease,
} from '../../index.ts'
import { mustServe } from '../auth/callers.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
import { encoding, payloadOf } from '../wire/payloads.ts'
import type { Redaction } from '../wire/redaction.ts'
import { anything, duration, flag, instant, listOf, ref, type Schema, shape, text, whole } from '../wire/schemas.ts'

const lease = shape({
  task: ref('Task'),
  token: text('required to renew or finish; keep it secret'),
  workerId: text(),
  fence: whole('grows with every claim: use it to guard writes to other systems'),
  expiresAt: instant,
  heartbeatEvery: whole('milliseconds: renew this often'),
})

const shown = async ({ task, token, workerId, fence }: TaskLease, redaction: Redaction): Promise<object> => {
  const { expiresAt, ttl } = task.lease!
  return {
    task: await redaction.claimed(task),
    token,
    workerId,
    fence,
    expiresAt: new Date(expiresAt).toISOString(),
    heartbeatEvery: Math.max(1, Math.floor(ttl / 3)),
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
  const { claims, body, redaction } = call
  const { limit = 1, wait = 0, queues = call.access.queues ?? ['default'], ...options } = body as unknown as Wish
  if (limit < 1 || limit > MOST || queues.length === 0)
    throw new HoldfastError('INVALID_OPTION', `limit must be 1 to ${MOST}, and queues must name one`, {
      field: 'limit',
    })
  for (const queue of queues) mustServe(call.access, queue)
  const patience = Math.min(parseDuration(wait, 'wait'), LONGEST_WAIT)
  const leases = await claims.some({ ...options, queues, limit, patience }, () => call.signal)
  return { leases: await Promise.all(leases.map((one) => shown(one, redaction))) }
}

type Finish = (held: TaskLease, call: Call) => Promise<Task>

/** The token alone identifies the holder. */
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
  body: shape({ token: text('from the claim'), ...required }, optional),
  answer: shape({ id: text(), status: text(), availableAt: instant, attempts: whole() }),
  refuses: ['TASK_NOT_FOUND', 'STALE_LEASE'],
  run: async (call) => {
    const { id, status, availableAt, attempts } = await finish(await heldBy(call), call)
    return { id, status, availableAt: new Date(availableAt).toISOString(), attempts }
  },
})

export const heldBy = async ({ client, params, body, access }: Call): Promise<TaskLease> => {
  const held = await client.lease(params['id']!, { token: body['token'] as string })
  mustServe(access, held.task.queue)
  return held
}

interface Failure {
  readonly error: Partial<ErrorFacts> & { readonly message: string }
  readonly permanent?: boolean
  readonly delay?: Duration
}

/** The error as the remote handler reported it, without anything of this process. */
const errorOf = ({ error: { name = 'Error', message, stack = '', ...facts }, permanent, delay }: Failure): Error => {
  const retried = (): Error => (delay === undefined ? new Error(message) : new RetryableError(message, { delay }))
  const error = permanent ? new PermanentError(message) : retried()
  return Object.defineProperties(Object.assign(error, facts), { name: { value: name }, stack: { value: stack } })
}

export const LEASES: readonly Route[] = [
  {
    method: 'post',
    path: '/claim',
    name: 'claim',
    summary: 'Claims the next due tasks, each under a lease; an empty list if there are none',
    right: 'work',
    body: shape(
      { workerId: text('unique for every start of every worker') },
      {
        queues: listOf(text(), 20),
        types: listOf(text(), 200),
        limit: whole(`1 to ${MOST}; default 1`),
        leaseTtl: duration,
        wait: anything('how long to wait for work: a duration of up to 30 s; default 0'),
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
    summary: 'Claims this task. A repeat by the same worker returns the same lease',
    right: 'work',
    body: shape({ workerId: text() }, { leaseTtl: duration }),
    answer: lease,
    refuses: [
      'TASK_NOT_FOUND',
      'TASK_ALREADY_CLAIMED',
      'TASK_NOT_AVAILABLE',
      'TASK_EXPIRED',
      'QUEUE_PAUSED',
      'LIMIT_REACHED',
      'TASK_COMPLETED',
      'TASK_FAILED',
      'TASK_CANCELLED',
      'TASK_ARCHIVED',
      'INVALID_WORKER_ID',
    ],
    run: async ({ client, params, body, redaction, access }) => {
      if (access.queues !== undefined) mustServe(access, (await client.get(params['id']!)).queue)
      return shown(await client.claim(params['id']!, body as unknown as Wish), redaction)
    },
  },
  {
    method: 'post',
    path: '/tasks/{id}/heartbeat',
    name: 'heartbeatTask',
    summary: 'Renews the lease, and says whether a cancel was requested',
    right: 'work',
    body: shape(
      { token: text('from the claim') },
      {
        progress: anything('any JSON value'),
        leaseTtl: anything('a new lease length: a duration. Default: the length of the claim'),
      },
    ),
    answer: shape({ cancelRequested: flag() }),
    refuses: ['TASK_NOT_FOUND', 'STALE_LEASE'],
    run: async (call) => {
      const { token: _, ...options } = call.body as { readonly token: string; readonly leaseTtl?: Duration }
      const held = await heldBy(call)
      const renewed = await held.renew(options)
      // A long run claims nothing: its heartbeats tell that the worker lives.
      const leaseTtl =
        options.leaseTtl === undefined ? held.task.lease?.ttl : parseDuration(options.leaseTtl, 'leaseTtl')
      if (held.workerId !== null) void call.client.heardOfWorker(held.workerId, { leaseTtl })
      return renewed
    },
  },
  finishing(
    'complete',
    'Completes the task with an output. A repeat with the same token succeeds',
    (held, { body: { output = null, encoding: how } }) => held.complete(payloadOf(output, how, 'output')),
    {},
    { output: anything('any JSON value; default null'), encoding },
  ),
  finishing(
    'fail',
    'Fails the run: the task is retried after a backoff, or dead if no retries are left or with `permanent`',
    (held, { body }) => held.fail(errorOf(body as unknown as Failure)),
    {
      error: shape(
        { message: text() },
        {
          name: text(),
          stack: text(),
          code: text(),
          detail: text(),
          cause: ref('ErrorCause'),
          errors: listOf(ref('ErrorCause')),
        },
      ),
    },
    { permanent: flag('no retry'), delay: anything('replaces the backoff before the retry, this once: a duration') },
  ),
  finishing(
    'reschedule',
    'Durable sleep: the task is pending again and due after the delay; costs no retry',
    (held, { body: { token: _, delay, ...options } }) =>
      held.reschedule(delay as Duration, options as RescheduleOptions),
    { delay: duration },
    {
      extendExpiration: duration,
      pause: {
        type: 'string',
        enum: ['queue', 'group'],
        description: 'also pause the queue, or the group of the task in it, until the task is due again',
      },
    },
  ),
  finishing('release', 'Returns the task to the queue as if it had not been claimed', (held) => held.release()),
]
