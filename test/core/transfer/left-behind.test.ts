/** What a move leaves of the run before it, field by field. */
import { describe, expect, it } from 'vitest'
import * as machine from '../../../src/core/machine.ts'
import type { SubmitOptions } from '../../../src/core/submission.ts'
import { applyChange, type Change, type TaskRecord } from '../../../src/core/task.ts'
import { fresh, NOW } from '../build.ts'

const LATER = NOW + 10_000
const actor = { now: LATER, by: 'operator', op: 'op' }
const me = { workerId: 'w' }
const after = (task: TaskRecord, change: Change | null): TaskRecord => applyChange(task, change!)

/** A run that has reported its progress. */
const running = (options: SubmitOptions = {}, task = fresh(options)): TaskRecord => ({
  ...after(task, machine.claim(task, { token: 't', workerId: 'w', leaseTtl: 5_000, now: NOW })),
  progress: '"half"',
})

describe.each<[string, (task: TaskRecord) => Change | null]>([
  ['a failure', (task) => machine.fail(task, me, { error: 'x', permanent: false, now: LATER, random: 0 })],
  ['a timeout', (task) => machine.timeOut(task, me, LATER, 0)],
  ['a lost lease', (task) => machine.overdue(task, actor, 0)],
  ['a reschedule', (task) => machine.reschedule(task, me, { delay: 1, extendExpiration: 0, now: LATER })],
  ['a release', (task) => machine.release(task, me, LATER)],
  ['an operator’s retry', (task) => machine.retry(task, actor)],
])('%s', (_, move) => {
  it('takes lease, progress and end with it: the next run begins with nothing of this one', () => {
    const before = running()
    const { status, lease, progress, completedAt, cancelRequestedAt, attempts } = after(before, move(before))
    expect({ status, lease, progress, completedAt, cancelRequestedAt, attempts }).toEqual({
      status: 'pending',
      lease: null,
      progress: null,
      completedAt: null,
      cancelRequestedAt: null,
      attempts: 1,
    })
  })
})

it('a replay gives back retries and reschedules, and takes the old expiry away', () => {
  const dead = { ...running({ ttl: '1h' }), retryCount: 3, rescheduleCount: 7 }
  const failed = after(dead, machine.fail(dead, me, { error: 'x', permanent: true, now: LATER, random: 0 }))
  expect(failed).toMatchObject({ status: 'failed', retryCount: 3, rescheduleCount: 7 })
  expect(after(failed, machine.replay(failed, actor))).toMatchObject({
    status: 'pending',
    retryCount: 0,
    rescheduleCount: 0,
    replayCount: 1,
    expiresAt: null,
    availableAt: LATER,
    completedAt: null,
  })
})

it('a retry of a cancelled task is due at once, also of one that was for later', () => {
  const task = fresh({ delay: '1h' })
  const cancelled = after(task, machine.cancel(task, actor))
  const again = machine.retry(cancelled, actor)
  expect(after(cancelled, again)).toMatchObject({ status: 'pending', availableAt: LATER, retryCount: 0 })
  expect(again.entry).toMatchObject({ move: 'retry', availableAt: LATER })
})

it('a reschedule tells in the history when it is due, how long it sleeps, and for the how many-th time', () => {
  const { entry } = machine.reschedule(running(), me, { delay: 60_000, extendExpiration: 0, now: LATER })
  expect(entry).toMatchObject({ move: 'reschedule', availableAt: LATER + 60_000, delay: 60_000, count: 1 })
})
