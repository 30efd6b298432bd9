/** Every move of the machine to every possible status, as stories that a store must be able to store. */

import { amend } from '../../core/amend.ts'
import { PermanentError } from '../../core/failure.ts'
import * as machine from '../../core/machine.ts'
import { recordSteps, settleWaits, signal, type Wait, wake } from '../../core/steps/steps.ts'
import type { Change, ChangeSet, Instant, TaskRecord } from '../../core/task.ts'
import { arrive, depart } from '../../core/transfer/transfer.ts'
import { commitAndCompare, type Decision, insert, LEASE_TTL, moved, NOW, task } from './build.ts'
import type { Case } from './case.ts'

export interface Story {
  /** What happens to the task; completes the phrase "a task that". */
  readonly name: string
  readonly start?: Partial<TaskRecord>
  readonly moves: readonly Decision[]
}

const holder = (record: TaskRecord) => ({ token: record.lease!.token })
const operator = (now: Instant) => ({ now, by: 'operator', op: `call-${now}` })
const json = (value: unknown) => ({ text: JSON.stringify(value), encoding: 'json' as const })

export const claimAt =
  (now: Instant): Decision =>
  (record) =>
    machine.claim(record, { token: `claim-${now}.1`, workerId: 'worker-1', leaseTtl: LEASE_TTL, now })

export const completeAt =
  (now: Instant): Decision =>
  (record) =>
    machine.complete(record, holder(record), json({ done: true }), now)

export const failAt =
  (now: Instant, error: unknown = new Error('no answer')): Decision =>
  (record) =>
    machine.fail(record, holder(record), { error, permanent: error instanceof PermanentError, now, random: 0.5 })

export const releaseAt =
  (now: Instant): Decision =>
  (record) =>
    machine.release(record, holder(record), now)

export const rescheduleAt =
  (now: Instant, delay = 60, extendExpiration = 0): Decision =>
  (record) =>
    machine.reschedule(record, holder(record), { delay, extendExpiration, now })

export const cancelAt =
  (now: Instant, reason?: string): Decision =>
  (record) =>
    machine.cancel(record, operator(now), reason)

const loseLeaseAt =
  (now: Instant): Decision =>
  (record) =>
    machine.loseLease(record, 'worker-2', now, 0.25)

const timeOutAt =
  (now: Instant): Decision =>
  (record) =>
    machine.timeOut(record, holder(record), now, 0.75)

export const by =
  (move: (record: TaskRecord, actor: machine.Actor) => Change | null, now: Instant): Decision =>
  (record) =>
    move(record, operator(now))

const amendAt =
  (now: Instant, set: ChangeSet): Decision =>
  (record) =>
    amend(record, operator(now), set)

const departAt =
  (now: Instant): Decision =>
  (record) =>
    depart(record, operator(now), 'elsewhere:')

const arriveAt =
  (now: Instant): Decision =>
  (record) =>
    arrive(record, operator(now), 'elsewhere:')

/** Of one payload, in the stories about steps. */
const MAX_PAYLOAD = 1_048_576

const stepAt =
  (now: Instant, ...results: readonly (readonly [name: string, value: unknown])[]): Decision =>
  (record) =>
    recordSteps(
      record,
      holder(record),
      results.map(([name, value]) => ({ name, value: value === undefined ? null : json(value) })),
      { now, maxPayload: MAX_PAYLOAD },
    )

const isFine = (): null => null

/** Parks the task, or records what is over. */
const waitAt =
  (now: Instant, waits: readonly Wait[], refusal: () => string | null = isFine): Decision =>
  (record) =>
    settleWaits(record, holder(record), waits, { now, maxPayload: MAX_PAYLOAD, refusal }).change

const sleepAt = (now: Instant, name: string, until: Instant): Decision => waitAt(now, [{ name, signal: null, until }])

const waitForAt = (now: Instant, name: string, until: Instant | null): Decision =>
  waitAt(now, [{ name, signal: name, until }])

const signalAt =
  (now: Instant, name: string, value: unknown, id = `signal-${now}`): Decision =>
  (record) =>
    signal(record, { id, name, value: value === undefined ? null : json(value) }, operator(now), MAX_PAYLOAD)

const claimed = claimAt(NOW + 10)
const asked = cancelAt(NOW + 20, 'not wanted any more')
const broken = failAt(NOW + 30, new PermanentError('no such user'))
const LAPSED = NOW + 10 + LEASE_TTL

const slept = sleepAt(NOW + 30, 'nap', NOW + 500)
const waited = waitForAt(NOW + 30, 'approved', null)

/** What tasks remember between their runs. */
const stepStories: readonly Story[] = [
  {
    name: 'records steps, fails, and is claimed again with them',
    start: { expiresAt: NOW + 5_000 },
    moves: [
      claimed,
      stepAt(NOW + 20, ['charge', { id: 'ch_1' }]),
      stepAt(NOW + 21, ['mail', undefined], ['naïve ☃ "quoted"', ['\u0000', null]]),
      failAt(NOW + 30),
      claimAt(NOW + 900),
      stepAt(NOW + 910, ['last', 0]),
      completeAt(NOW + 920),
    ],
  },
  {
    name: 'records a step as long as a book',
    moves: [claimed, stepAt(NOW + 20, ['book', 'é'.repeat(70_000)]), stepAt(NOW + 21, ['short', 1])],
  },
  {
    name: 'sleeps in the middle of its handler',
    start: { expiresAt: NOW + 5_000 },
    moves: [claimed, slept, claimAt(NOW + 500), stepAt(NOW + 510, ['after', true]), completeAt(NOW + 520)],
  },
  { name: 'sleeps after it was asked to stop', moves: [claimed, asked, slept] },
  { name: 'sleeps and is cancelled', moves: [claimed, slept, cancelAt(NOW + 40)] },
  { name: 'sleeps and is woken by an operator', moves: [claimed, slept, by(wake, NOW + 40), claimAt(NOW + 50)] },
  {
    name: 'sleeps and is given another priority',
    moves: [claimed, slept, amendAt(NOW + 40, { priority: 5, tags: { plan: 'a' } })],
  },
  {
    name: 'waits for a signal and takes it',
    moves: [
      claimed,
      waited,
      signalAt(NOW + 40, 'approved', { by: 'ann' }),
      claimAt(NOW + 50),
      waitForAt(NOW + 60, 'approved', null),
      completeAt(NOW + 70),
    ],
  },
  {
    name: 'waits for a signal and gets another one',
    moves: [claimed, waited, signalAt(NOW + 40, 'other', undefined), signalAt(NOW + 41, 'other', 2)],
  },
  {
    name: 'waits for a signal in vain',
    moves: [
      claimed,
      waitForAt(NOW + 30, 'approved', NOW + 500),
      claimAt(NOW + 500),
      waitForAt(NOW + 510, 'approved', NOW + 1_010),
    ],
  },
  {
    name: 'waits for a signal whose value its schema refuses',
    moves: [
      signalAt(NOW + 5, 'approved', 'maybe'),
      claimed,
      waitAt(NOW + 20, [{ name: 'approval', signal: 'approved', until: null }], () => 'not a boolean'),
    ],
  },
  {
    name: 'waits for two signals and a sleep at once',
    moves: [
      claimed,
      waitAt(NOW + 30, [
        { name: 'paid', signal: 'paid', until: null },
        { name: 'left', signal: 'cancel', until: NOW + 900 },
        { name: 'nap', signal: null, until: NOW + 700 },
      ]),
      signalAt(NOW + 40, 'cancel', null),
    ],
  },
  {
    name: 'is sent a signal while it runs',
    moves: [
      claimed,
      signalAt(NOW + 20, 'approved', { bytes: 'AP8=' }),
      stepAt(NOW + 25, ['charge', 1]),
      completeAt(NOW + 30),
    ],
  },
  {
    name: 'has steps, is replayed with them, and then without',
    moves: [
      claimed,
      stepAt(NOW + 20, ['charge', 1]),
      signalAt(NOW + 25, 'approved', 1),
      broken,
      by(machine.replay, NOW + 40),
      claimAt(NOW + 50),
      failAt(NOW + 60, new PermanentError('again')),
      (record) => machine.replay(record, operator(NOW + 70), { fresh: true }),
      claimAt(NOW + 80),
      stepAt(NOW + 90, ['charge', 2]),
    ],
  },
  { name: 'has steps and is moved to another store', moves: [claimed, slept, departAt(NOW + 40)] },
]

export const stories: readonly Story[] = [
  { name: 'completes', moves: [claimed, completeAt(NOW + 30)] },
  {
    name: 'completes with bytes',
    moves: [
      claimed,
      (record) => machine.complete(record, holder(record), { text: 'AP8=', encoding: 'base64' }, NOW + 30),
    ],
  },
  {
    name: 'fails, is retried and completes',
    moves: [claimed, failAt(NOW + 30), claimAt(NOW + 900), completeAt(NOW + 910)],
  },
  { name: 'fails for good', moves: [claimed, broken] },
  { name: 'fails with no retries left', start: { maxRetries: 0 }, moves: [claimed, failAt(NOW + 30)] },
  { name: 'fails after it was asked to stop', moves: [claimed, asked, failAt(NOW + 30)] },
  { name: 'completes after it was asked to stop', moves: [claimed, asked, completeAt(NOW + 30)] },
  { name: 'loses its lease', moves: [claimed, loseLeaseAt(LAPSED)] },
  { name: 'loses its lease with no retries left', start: { maxRetries: 0 }, moves: [claimed, loseLeaseAt(LAPSED)] },
  { name: 'loses its lease after it was asked to stop', moves: [claimed, asked, loseLeaseAt(LAPSED)] },
  { name: 'times out', moves: [claimed, timeOutAt(NOW + 60)] },
  { name: 'times out with no retries left', start: { maxRetries: 0 }, moves: [claimed, timeOutAt(NOW + 60)] },
  { name: 'times out after it was asked to stop', moves: [claimed, asked, timeOutAt(NOW + 60)] },
  { name: 'sleeps twice', moves: [claimed, rescheduleAt(NOW + 30), claimAt(NOW + 100), rescheduleAt(NOW + 110, 0)] },
  {
    name: 'sleeps and extends its expiry',
    start: { expiresAt: NOW + 5_000 },
    moves: [claimed, rescheduleAt(NOW + 30, 60, 7_000)],
  },
  { name: 'sleeps once too often', start: { maxReschedules: 0 }, moves: [claimed, rescheduleAt(NOW + 30)] },
  { name: 'wants to sleep after it was asked to stop', moves: [claimed, asked, rescheduleAt(NOW + 30)] },
  { name: 'is given back', moves: [claimed, releaseAt(NOW + 30)] },
  { name: 'is given back after it was asked to stop', moves: [claimed, asked, releaseAt(NOW + 30)] },
  { name: 'expires', start: { expiresAt: NOW + 5 }, moves: [by(machine.expire, NOW + 5)] },
  {
    name: 'is given another priority, time, expiry, input and tags while it waits',
    start: { expiresAt: NOW + 5_000, tags: { customer: 'c1' } },
    moves: [
      amendAt(NOW + 5, { priority: 9, availableAt: NOW + 50, expiresAt: NOW + 9_000, tags: { plan: 'a "b"' } }),
      amendAt(NOW + 6, { input: 'AP8=', encoding: 'base64', tags: null }),
      amendAt(NOW + 7, { input: '{"to":"b"}', encoding: 'json', expiresAt: null }),
      amendAt(NOW + 8, { availableAt: NOW + 8 }),
      claimed,
    ],
  },
  { name: 'is cancelled before it ran', moves: [cancelAt(NOW + 5, 'a "reason"')] },
  { name: 'is cancelled and retried', moves: [cancelAt(NOW + 5), by(machine.retry, NOW + 6)] },
  { name: 'fails for good and is retried', moves: [claimed, broken, by(machine.retry, NOW + 40)] },
  { name: 'is taken away by an operator', moves: [claimed, by(machine.retry, NOW + 40)] },
  {
    name: 'is taken away with no retries left, after it was asked to stop',
    start: { maxRetries: 0 },
    moves: [claimed, asked, by(machine.retry, NOW + 40)],
  },
  { name: 'is taken away after it was asked to stop', moves: [claimed, asked, by(machine.retry, NOW + 40)] },
  { name: 'is replayed', start: { expiresAt: NOW + 5_000 }, moves: [claimed, broken, by(machine.replay, NOW + 40)] },
  {
    name: 'is replayed with a new expiry',
    moves: [claimed, broken, (record) => machine.replay(record, operator(NOW + 40), { expiresAt: NOW + 9_000 })],
  },
  { name: 'completes and is archived', moves: [claimed, completeAt(NOW + 30), by(machine.archive, NOW + 40)] },
  {
    name: 'completes, is archived and brought back',
    moves: [claimed, completeAt(NOW + 30), by(machine.archive, NOW + 40), by(machine.unarchive, NOW + 50)],
  },
  {
    name: 'is replayed as a new task, brought back and replayed again',
    moves: [
      claimed,
      broken,
      (record) => machine.archive(record, operator(NOW + 40), '01900000-0000-7000-8000-0000000000ff'),
      by(machine.unarchive, NOW + 50),
      by(machine.replay, NOW + 60),
      claimAt(NOW + 70),
    ],
  },
  {
    name: 'is cancelled, archived and brought back',
    moves: [cancelAt(NOW + 5), by(machine.archive, NOW + 6), by(machine.unarchive, NOW + 7)],
  },
  {
    name: 'expires, is archived and brought back',
    moves: [by(machine.expire, NOW + 5), by(machine.archive, NOW + 6), by(machine.unarchive, NOW + 7)],
  },
  ...stepStories,
  { name: 'is moved to another store before it ran', moves: [departAt(NOW + 5)] },
  { name: 'is moved here from another store, where it waited', moves: [departAt(NOW + 5), arriveAt(NOW + 6)] },
  {
    name: 'fails once, is moved here from another store, and is claimed',
    moves: [claimed, failAt(NOW + 30), departAt(NOW + 40), arriveAt(NOW + 41), claimAt(NOW + 300)],
  },
  {
    name: 'has options and tags and is moved to another store',
    start: {
      tags: { 'the "colour"': 'réd', moved: 'by hand' },
      retryPolicy: { base: 1, multiplier: 1.5, max: 7, jitter: 'none' },
      timeout: null,
      maxRetries: null,
      maxReschedules: 7,
      scheduleId: 'nightly',
    },
    moves: [claimed, failAt(NOW + 30), departAt(NOW + 40)],
  },
  { name: 'completes and is moved to another store', moves: [claimed, completeAt(NOW + 30), departAt(NOW + 40)] },
  { name: 'fails for good and is moved to another store', moves: [claimed, broken, departAt(NOW + 40)] },
  { name: 'is cancelled and moved to another store', moves: [cancelAt(NOW + 5), departAt(NOW + 6)] },
  { name: 'expires and is moved to another store', moves: [by(machine.expire, NOW + 5), departAt(NOW + 6)] },
  {
    name: 'completes, is archived and moved to another store',
    moves: [claimed, completeAt(NOW + 30), by(machine.archive, NOW + 40), departAt(NOW + 50)],
  },
]

/** The final task of every story: at least one of every status. */
export const population: readonly TaskRecord[] = stories.map(({ start, moves }, i) =>
  moved(task(i + 1, start), ...moves),
)

/** One case per story: after every move the store holds what the machine computes, field by field, including the history. */
export const moveCases: readonly Case[] = stories.map(({ name, start, moves }) => ({
  name: `a task that ${name} is stored after every move as the machine made it`,
  async run(store) {
    const first = task(1, start)
    await insert(store, first)
    for (const decide of moves) await commitAndCompare(store, first.id, decide)
  },
}))
