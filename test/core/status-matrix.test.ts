/**
 * What every call makes of a task in every status: the status after it, or the code of the refusal. Written out by hand from the
 * specification, so that neither the table in the code nor the functions behind it can be their own witness.
 */
import { describe, expect, it } from 'vitest'
import { amend } from '../../src/core/amend.ts'
import { isHoldfastError } from '../../src/core/errors.ts'
import * as machine from '../../src/core/machine.ts'
import { recordSteps, settleWaits, signal } from '../../src/core/steps/steps.ts'
import type { SubmitOptions } from '../../src/core/submission.ts'
import { applyChange, type Change, type TaskRecord } from '../../src/core/task.ts'
import { fresh, NOW } from './build.ts'

const LATER = NOW + 10_000
const actor = { now: LATER, by: 'operator', op: 'op' }
const me = { workerId: 'w' }
const boom = { error: new Error('x'), now: LATER, random: 0 }

const CALLS: Readonly<Record<string, (task: TaskRecord) => Change | null>> = {
  claim: (task) => machine.claim(task, { token: 'u', workerId: 'w', leaseTtl: 5_000, now: LATER }),
  complete: (task) => machine.complete(task, me, { text: 'null', encoding: 'json' }, LATER),
  fail: (task) => machine.fail(task, me, { ...boom, permanent: false }),
  failPermanently: (task) => machine.fail(task, me, { ...boom, permanent: true }),
  timeOut: (task) => machine.timeOut(task, me, LATER, 0),
  overdue: (task) => machine.overdue(task, actor, 0),
  reschedule: (task) => machine.reschedule(task, me, { delay: 1, extendExpiration: 0, now: LATER }),
  release: (task) => machine.release(task, me, LATER),
  expire: (task) => machine.expire(task, actor),
  cancel: (task) => machine.cancel(task, actor),
  retry: (task) => machine.retry(task, actor),
  replay: (task) => machine.replay(task, actor),
  archive: (task) => machine.archive(task, actor),
  unarchive: (task) => machine.unarchive(task, actor),
  amend: (task) => amend(task, actor, { priority: 5 }),
  step: (task) => recordSteps(task, me, [{ name: 'charge', value: null }], { now: LATER, maxPayload: 100 }),
  park: (task) =>
    settleWaits(task, me, [{ name: 'nap', signal: null, until: LATER + 1 }], {
      now: LATER,
      maxPayload: 1_048_576,
      refusal: () => null,
    }).change,
  signal: (task) => signal(task, { id: 's', name: 'go', value: null }, actor, 100),
}

const after = (task: TaskRecord, change: Change | null): TaskRecord => applyChange(task, change!)
const running = (options: SubmitOptions = {}): TaskRecord => {
  const task = fresh({ timeout: null, ...options })
  return after(task, machine.claim(task, { token: 't', workerId: 'w', leaseTtl: 5_000, now: NOW }))
}
const completed = (): TaskRecord => after(running(), CALLS['complete']!(running()))
const failed = (options: SubmitOptions = {}): TaskRecord =>
  after(running(options), CALLS['failPermanently']!(running(options)))
const cancelled = (): TaskRecord => after(fresh(), machine.cancel(fresh(), actor))
const expired = (): TaskRecord => after(fresh(), machine.expire(fresh(), actor))
const archived = (task: TaskRecord): TaskRecord => after(task, machine.archive(task, actor))

/** Refused in the same way, whichever of these it is. */
const held = (code: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    ['complete', 'fail', 'failPermanently', 'timeOut', 'reschedule', 'release', 'step', 'park'].map((call) => [
      call,
      code,
    ]),
  )

const REFUSED = {
  overdue: 'nothing',
  expire: 'CANNOT_EXPIRE',
  cancel: 'CANNOT_CANCEL',
  retry: 'CANNOT_RETRY',
  replay: 'CANNOT_REPLAY',
  archive: 'TASK_NOT_TERMINAL',
  unarchive: 'CANNOT_UNARCHIVE',
  amend: 'CANNOT_AMEND',
  signal: 'TASK_ENDED',
}
const ENDED = { ...REFUSED, archive: 'archived' }
const ARCHIVED = { ...REFUSED, claim: 'TASK_ARCHIVED', ...held('TASK_ARCHIVED'), archive: 'nothing' }
const RUNNING = {
  ...REFUSED,
  claim: 'TASK_ALREADY_CLAIMED',
  complete: 'completed',
  fail: 'pending',
  failPermanently: 'failed',
  timeOut: 'pending',
  overdue: 'pending',
  reschedule: 'pending',
  release: 'pending',
  cancel: 'running',
  retry: 'pending',
  step: 'running',
  park: 'pending',
  signal: 'running',
}

const MATRIX: readonly (readonly [name: string, task: TaskRecord, Readonly<Record<string, string>>])[] = [
  [
    'pending',
    fresh(),
    {
      ...REFUSED,
      claim: 'running',
      ...held('TASK_NOT_CLAIMED'),
      expire: 'expired',
      cancel: 'cancelled',
      amend: 'pending',
      signal: 'pending',
    },
  ],
  [
    'pending, past its expiry',
    fresh({ ttl: '1s' }),
    {
      ...REFUSED,
      claim: 'TASK_EXPIRED',
      ...held('TASK_NOT_CLAIMED'),
      overdue: 'expired',
      expire: 'expired',
      cancel: 'cancelled',
      signal: 'pending',
    },
  ],
  [
    'pending, for later',
    fresh({ delay: '1h' }),
    {
      ...REFUSED,
      claim: 'TASK_NOT_AVAILABLE',
      ...held('TASK_NOT_CLAIMED'),
      expire: 'expired',
      cancel: 'cancelled',
      amend: 'pending',
      signal: 'pending',
    },
  ],
  ['running', running(), RUNNING],
  [
    'running, with nothing left to spend',
    running({ maxRetries: 0, maxReschedules: 0 }),
    {
      ...RUNNING,
      fail: 'failed',
      timeOut: 'failed',
      overdue: 'failed',
      reschedule: 'failed',
      retry: 'MAX_ATTEMPTS_REACHED',
    },
  ],
  [
    'running, asked to stop',
    after(running(), machine.cancel(running(), actor)),
    {
      ...RUNNING,
      fail: 'cancelled',
      failPermanently: 'cancelled',
      timeOut: 'cancelled',
      overdue: 'cancelled',
      reschedule: 'cancelled',
      release: 'cancelled',
      park: 'cancelled',
      cancel: 'nothing',
      retry: 'cancelled',
    },
  ],
  ['completed', completed(), { ...ENDED, claim: 'TASK_COMPLETED', ...held('TASK_COMPLETED') }],
  [
    'failed, with retries left',
    failed(),
    { ...ENDED, claim: 'TASK_FAILED', ...held('TASK_FAILED'), retry: 'pending', replay: 'pending' },
  ],
  [
    'failed, without',
    failed({ maxRetries: 0 }),
    { ...ENDED, claim: 'TASK_FAILED', ...held('TASK_FAILED'), retry: 'MAX_ATTEMPTS_REACHED', replay: 'pending' },
  ],
  [
    'cancelled',
    cancelled(),
    { ...ENDED, claim: 'TASK_CANCELLED', ...held('TASK_CANCELLED'), cancel: 'nothing', retry: 'pending' },
  ],
  ['expired', expired(), { ...ENDED, claim: 'TASK_EXPIRED', ...held('TASK_EXPIRED') }],
  ...[completed(), failed(), cancelled(), expired()].map(
    (task) => [`archived, ${task.status} before`, archived(task), { ...ARCHIVED, unarchive: task.status }] as const,
  ),
]

const outcome = (task: TaskRecord, call: (task: TaskRecord) => Change | null): string => {
  try {
    const change = call(task)
    return change === null ? 'nothing' : applyChange(task, change).status
  } catch (error) {
    if (isHoldfastError(error)) return error.code
    throw error
  }
}

describe.each(MATRIX)('[C14][C17] a task that is %s', (_, task, expected) => {
  it('is moved or refused by each call as the specification says', () => {
    const found = Object.fromEntries(Object.entries(CALLS).map(([name, call]) => [name, outcome(task, call)]))
    expect(found).toEqual(expected)
  })
})

it('[C14] every way of the table is gone by one of these calls, so none of it is dead', () => {
  const gone = new Set(
    MATRIX.flatMap(([, task]) =>
      Object.values(CALLS).flatMap((call) => {
        try {
          const change = call(task)
          return change === null ? [] : [`${change.entry.move}: ${task.status} → ${change.set.status ?? task.status}`]
        } catch {
          return []
        }
      }),
    ),
  )
  const ways = Object.entries(machine.MOVES)
    // Moves of another room: transfer.
    .filter(([name]) => name !== 'depart' && name !== 'arrive')
    .flatMap(([name, { ways }]) =>
      Object.entries(ways).flatMap(([from, to]) => (to as readonly string[]).map((end) => `${name}: ${from} → ${end}`)),
    )
  expect(ways.filter((way) => !gone.has(way))).toEqual([])
})
