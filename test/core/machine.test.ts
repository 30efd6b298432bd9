import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { amend } from '../../src/core/amend.ts'
import { HoldfastError } from '../../src/core/errors.ts'
import * as machine from '../../src/core/machine.ts'
import { recordSteps, settleWaits, signal, type Wait } from '../../src/core/steps/steps.ts'
import { applyChange, type Change, isTerminal, type TaskRecord } from '../../src/core/task.ts'
import { checkHistory } from '../../src/testing/check-history.ts'
import { fresh, NOW } from './build.ts'

type Step = {
  readonly do: string
  readonly wait: number
  readonly dice: number
  readonly mine: boolean
  readonly permanent: boolean
}

const steps = fc.array(
  fc.record<Step>({
    do: fc.constantFrom(
      'claim',
      'complete',
      'fail',
      'timeOut',
      'overdue',
      'reschedule',
      'release',
      'expire',
      'cancel',
      'retry',
      'replay',
      'archive',
      'unarchive',
      'amend',
      'step',
      'sleep',
      'wait',
      'signal',
    ),
    wait: fc.integer({ min: 0, max: 4_000 }),
    dice: fc.double({ min: 0, max: 0.999_999, noNaN: true }),
    mine: fc.boolean(),
    permanent: fc.boolean(),
  }),
  { maxLength: 60 },
)

const options = fc.record(
  {
    maxRetries: fc.option(fc.integer({ min: 0, max: 5 })),
    maxReschedules: fc.option(fc.integer({ min: 0, max: 3 })),
    ttl: fc.constantFrom(0 as const, '1s', '20s', '1h'),
  },
  { requiredKeys: [] },
)

const decide = (task: TaskRecord, step: Step, now: number, n: number): Change | null => {
  const actor = { now, by: 'someone', op: `op-${n}` }
  // Sometimes a lease that is not the current one.
  const holder = { token: step.mine ? (task.lease?.token ?? 'none') : `token-${n - 2}` }
  switch (step.do) {
    case 'claim':
      return machine.claim(task, { token: `token-${n}`, workerId: `w${n % 3}`, leaseTtl: 3_000, now })
    case 'complete':
      return machine.complete(task, holder, { text: 'null', encoding: 'json' }, now)
    case 'fail':
      return machine.fail(task, holder, { error: new Error('x'), permanent: step.permanent, now, random: step.dice })
    case 'timeOut':
      return machine.timeOut(task, holder, now, step.dice)
    case 'overdue':
      return machine.overdue(task, actor, step.dice)
    case 'reschedule':
      return machine.reschedule(task, holder, { delay: step.wait, extendExpiration: step.permanent ? 1_000 : 0, now })
    case 'release':
      return machine.release(task, holder, now)
    case 'expire':
      return machine.expire(task, actor)
    case 'cancel':
      return machine.cancel(task, actor)
    case 'retry':
      return machine.retry(task, actor)
    case 'replay':
      return machine.replay(task, actor)
    case 'archive':
      return machine.archive(task, actor)
    case 'amend':
      return amend(task, actor, { availableAt: now + step.wait, priority: step.permanent ? 1 : 2 })
    case 'step':
      return recordSteps(task, holder, [{ name: `step-${n % 5}`, value: null }], { now, maxPayload: 100 })
    case 'sleep':
      return waitFor(task, holder, { name: `nap-${n % 3}`, signal: null, until: now + step.wait }, now)
    case 'wait':
      return waitFor(
        task,
        holder,
        { name: `wait-${n % 3}`, signal: 'go', until: step.permanent ? null : now + step.wait },
        now,
      )
    case 'signal':
      return signal(task, { id: `signal-${n % 9}`, name: 'go', value: null }, actor, 100)
    default:
      return machine.unarchive(task, actor)
  }
}

const waitFor = (task: TaskRecord, holder: { readonly token: string }, wait: Wait, now: number): Change | null =>
  settleWaits(task, holder, [wait], { now, maxPayload: 1_048_576, refusal: () => null }).change

/** Every record on the way, with the change that led to it. */
const walk = (
  start: TaskRecord,
  path: readonly Step[],
): { before: TaskRecord; change: Change; after: TaskRecord }[] => {
  const way: { before: TaskRecord; change: Change; after: TaskRecord }[] = []
  let task = start
  let now = NOW
  for (const [n, step] of path.entries()) {
    now += step.wait
    try {
      const change = decide(task, step, now, n)
      if (change === null) continue
      const after = applyChange(task, change)
      way.push({ before: task, change, after })
      task = after
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code === 'INTERNAL') throw error
    }
  }
  return way
}

const walks = (check: (start: TaskRecord, way: ReturnType<typeof walk>) => void): void =>
  fc.assert(
    fc.property(options, steps, (given, path) => {
      const start = fresh(given)
      check(start, walk(start, path))
    }),
    { numRuns: 2_000 },
  )

/** SPEC.md section 2, written out by hand: the machine must not check itself. */
const TABLE = [
  'claim: pending → running',
  'complete: running → completed',
  ...['fail', 'lose-lease', 'time-out', 'reschedule'].flatMap((move) => [
    `${move}: running → pending`,
    `${move}: running → failed`,
    `${move}: running → cancelled`,
  ]),
  'release: running → pending',
  'release: running → cancelled',
  'expire: pending → expired',
  'cancel: pending → cancelled',
  'amend: pending → pending',
  'request-cancel: running → running',
  'step: running → running',
  'park: running → pending',
  'park: running → cancelled',
  'signal: pending → pending',
  'signal: running → running',
  'retry: failed → pending',
  'retry: cancelled → pending',
  'retry: running → pending',
  'retry: running → cancelled',
  'replay: failed → pending',
  ...['completed', 'failed', 'cancelled', 'expired'].flatMap((status) => [
    `archive: ${status} → archived`,
    `unarchive: archived → ${status}`,
  ]),
  ...['pending', 'completed', 'failed', 'cancelled', 'expired', 'archived'].map(
    (status) => `depart: ${status} → archived`,
  ),
  'arrive: archived → pending',
]

it('the table of moves has exactly the ways of the specification', () => {
  const ways = Object.entries(machine.MOVES).flatMap(([name, { ways }]) =>
    Object.entries(ways).flatMap(([from, to]) => (to as readonly string[]).map((end) => `${name}: ${from} → ${end}`)),
  )
  expect(ways.sort()).toEqual([...TABLE].sort())
})

it('refuses a move by a way that is not in the table', () => {
  expect(machine.isLegal('retry', 'failed', 'failed')).toBe(false)
  expect(machine.isLegal('retry', 'cancelled', 'cancelled')).toBe(false)
  expect(machine.isLegal('retry', 'running', 'failed')).toBe(false)
})

describe('no sequence of moves', () => {
  it('[C15][Q04] goes by a way that is not in the table', () => {
    walks((_, way) => {
      for (const { before, change, after } of way) {
        expect(TABLE).toContain(`${change.entry.move}: ${before.status} → ${after.status}`)
        expect(change.from).toBe(before.status)
      }
    })
  })

  it('leaves a terminal status but by retry, replay, archive and unarchive', () => {
    walks((_, way) => {
      for (const { before, change, after } of way) {
        if (!isTerminal(before.status)) continue
        expect(['retry', 'replay', 'archive', 'unarchive']).toContain(change.entry.move)
        if (before.status === 'expired' || before.status === 'completed') expect(after.status).toBe('archived')
        if (before.status === 'archived') expect(after.status).toBe(before.archivedFrom)
      }
    })
  })

  it('[F07] lowers attempts, skips a revision, or has two leases', () => {
    walks((_, way) => {
      const tokens = new Set<string>()
      for (const { before, change, after } of way) {
        expect(after.attempts - before.attempts).toBe(change.entry.move === 'claim' ? 1 : 0)
        expect(after.revision).toBe(before.revision + 1)
        expect(change.entry.n).toBe(after.revision)
        expect(after.updatedAt).toBe(change.entry.at)
        expect(after.status === 'running').toBe(after.lease !== null)
        if (change.entry.move === 'claim') {
          expect(tokens.has(after.lease!.token)).toBe(false)
          tokens.add(after.lease!.token)
        }
      }
    })
  })

  it('[F08] moves a running task out of its lease under another’s token', () => {
    walks((_, way) => {
      for (const { before, change } of way) {
        if (before.status !== 'running' || ['request-cancel', 'retry', 'signal'].includes(change.entry.move)) continue
        expect(change.entry.op).toBe(before.lease!.token)
      }
    })
  })

  it('[H01] grants more retries than there are, in one replay; reschedules neither', () => {
    walks((start, way) => {
      for (const { change, after } of way) {
        if (start.maxRetries !== null) expect(after.retryCount).toBeLessThanOrEqual(start.maxRetries)
        if (start.maxReschedules !== null) expect(after.rescheduleCount).toBeLessThanOrEqual(start.maxReschedules)
        if (change.entry.move === 'replay') expect([after.retryCount, after.rescheduleCount]).toEqual([0, 0])
      }
    })
  })

  it('leaves anything of a run behind on a pending task, or an end without its instant', () => {
    walks((_, way) => {
      for (const { after, change } of way) {
        if (after.status === 'pending')
          expect([after.lease, after.completedAt, after.cancelRequestedAt, after.progress]).toEqual([
            null,
            null,
            null,
            null,
          ])
        if (isTerminal(after.status)) expect(after.completedAt).not.toBeNull()
        if (change.entry.move === 'fail' || change.entry.move === 'time-out') expect(after.lastError).not.toBeNull()
      }
    })
  })

  it('moves expiresAt but a step, a park, a reschedule that asks for it, and a replay', () => {
    walks((_, way) => {
      for (const { before, after, change } of way) {
        const { move, to } = change.entry
        if (move === 'step' || (move === 'park' && to === 'pending'))
          expect(after.expiresAt, 'a ttl means "start by"').toBeNull()
        else if (!['reschedule', 'replay'].includes(move)) expect(after.expiresAt).toBe(before.expiresAt)
      }
    })
  })

  it('leaves a history that the checker objects to', () => {
    walks((start, way) => {
      const end = way.at(-1)?.after ?? start
      expect(checkHistory({ tasks: [end] })).toEqual([])
    })
  })
})

describe('claim', () => {
  const claimed = (task: TaskRecord, now = NOW) =>
    machine.claim(task, { token: 't', workerId: 'w', leaseTtl: 5_000, now })

  it('[F02][J02] looks at the expiry first, then at the time', () => {
    expect(() => claimed(fresh({ ttl: '1s', delay: '1h' }), NOW + 1_000)).toThrow(
      expect.objectContaining({ code: 'TASK_EXPIRED' }),
    )
    expect(() => claimed(fresh({ delay: '1h' }), NOW + 3_599_999)).toThrow(
      expect.objectContaining({ code: 'TASK_NOT_AVAILABLE' }),
    )
    expect(claimed(fresh({ delay: '1h' }), NOW + 3_600_000).set.status).toBe('running')
    expect(claimed(fresh({ ttl: '1s' }), NOW + 999).set.status).toBe('running')
  })
})

describe('a run', () => {
  const holder = { token: 't' }
  it.each([
    ['complete', (task: TaskRecord) => machine.complete(task, holder, { text: '1', encoding: 'json' }, NOW - 7)],
    [
      'fail',
      (task: TaskRecord) => machine.fail(task, holder, { error: 'no', permanent: true, now: NOW - 7, random: 0 }),
    ],
    ['release', (task: TaskRecord) => machine.release(task, holder, NOW - 7)],
  ] as const)('does not end before it began, although its holder knows the time less exactly: %s', (_, end) => {
    const task = fresh()
    const running = applyChange(task, machine.claim(task, { token: 't', workerId: 'w', leaseTtl: 1_000, now: NOW }))
    expect(applyChange(running, end(running))).toMatchObject({ startedAt: NOW, updatedAt: NOW })
  })
})

describe('a lapsed lease', () => {
  const running = (): TaskRecord => {
    const task = fresh()
    return applyChange(task, machine.claim(task, { token: 't', workerId: 'w', leaseTtl: 5_000, now: NOW }))
  }

  it('is taken only from its end on, and only while it still ends when it was seen to', () => {
    const task = running()
    expect(machine.overdue(task, { now: NOW + 4_999, by: 'x', op: 'o' }, 0)).toBeNull()
    const change = machine.overdue(task, { now: NOW + 5_000, by: 'x', op: 'o' }, 0)!
    expect(change.leaseExpiresAt).toBe(NOW + 5_000)
    expect(change.entry).toMatchObject({ move: 'lose-lease', op: 't', by: 'x', error: 'lease expired' })
    expect(() => machine.loseLease(task, 'x', NOW + 4_999, 0)).toThrow(expect.objectContaining({ code: 'INTERNAL' }))
  })
})
