import { describe, expect, it } from 'vitest'
import { Task } from '../../src/core/observe/task-view.ts'
import { HISTORY_KEPT, type HistoryEntry, keptHistory } from '../../src/core/task.ts'
import { checkHistory } from '../../src/testing/check-history.ts'
import { fresh, NOW } from './build.ts'

const entry = (n: number, fields: Partial<HistoryEntry> = {}): HistoryEntry => ({
  n,
  at: NOW,
  move: 'submit',
  to: 'pending',
  by: 'x',
  op: `op${n}`,
  ...fields,
})

describe('history', () => {
  it('keeps the first entry and the last 99', () => {
    const long = Array.from({ length: 250 }, (_, i) => entry(i + 1))
    const kept = keptHistory(long)
    expect(kept).toHaveLength(HISTORY_KEPT)
    expect([kept[0]!.n, kept[1]!.n, kept.at(-1)!.n]).toEqual([1, 152, 250])
    expect(keptHistory(long.slice(0, 100))).toHaveLength(100)
  })
})

describe('the checker of histories', () => {
  const claim = entry(2, { move: 'claim', to: 'running', op: 't1' })
  const complete = entry(3, { move: 'complete', to: 'completed', op: 't1' })
  const done = {
    ...fresh(),
    status: 'completed' as const,
    revision: 3,
    attempts: 1,
    history: [fresh().history[0]!, claim, complete],
  }

  it('has nothing to say about a plain story', () => {
    expect(
      checkHistory({ tasks: [done], submitted: [done.id], starts: [{ id: done.id, fence: 1 }], drained: true }),
    ).toEqual([])
  })

  it('knows that an amendment can clear the expiry', () => {
    const first = { ...fresh().history[0]!, expiresAt: NOW + 10 }
    const cleared = entry(2, { move: 'amend', to: 'pending', changed: ['expiresAt'], at: NOW + 1 })
    const late = { ...claim, n: 3, at: NOW + 20 }
    const task = { ...done, revision: 4, history: [first, cleared, late, { ...complete, n: 4, at: NOW + 21 }] }
    expect(checkHistory({ tasks: [task] })).toEqual([])
    const amended = { ...cleared, changed: ['priority'] }
    expect(checkHistory({ tasks: [{ ...task, history: [first, amended, ...task.history.slice(2)] }] }).join()).toMatch(
      /after it had expired/,
    )
  })

  it('names each kind of impossible story', () => {
    const other = '01900000-0000-7000-8000-000000000099'
    const lease = { token: 't9', workerId: 'w', claimedAt: NOW, expiresAt: NOW, ttl: 0 }
    const stories: [Parameters<typeof checkHistory>[0], RegExp][] = [
      [{ tasks: [], submitted: [done.id] }, /was submitted and is lost/],
      [{ tasks: [done], submitted: [other] }, /was never submitted/],
      [{ tasks: [{ ...done, history: [done.history[0]!, complete] }] }, /entry 1 is number 3 after 1/],
      [{ tasks: [{ ...done, revision: 4 }] }, /its revision 4/],
      [{ tasks: [{ ...done, status: 'failed' }] }, /leads to completed, but it is failed/],
      [
        {
          tasks: [
            {
              ...done,
              history: [...done.history, entry(4, { move: 'fail', to: 'failed', op: 't1' })],
              revision: 4,
              status: 'failed',
            },
          ],
        },
        /fail from completed to failed is not a legal move/,
      ],
      [
        { tasks: [{ ...done, history: [done.history[0]!, claim, { ...complete, op: 't2' }] }] },
        /was written under t2, but t1 held the lease/,
      ],
      [{ tasks: [{ ...done, attempts: 2 }] }, /claimed 1 times, but its fence is 2/],
      [{ tasks: [{ ...done, lease }] }, /is completed with a lease/],
      [{ tasks: [{ ...done, retryCount: 4 }] }, /has used 4 retries of 3/],
      [{ tasks: [{ ...done, retryCount: 1 }] }, /grants 0 retries, its count says 1/],
      [{ tasks: [{ ...done, createdAt: NOW + 5 }] }, /5 ms before it was due/],
      [{ tasks: [fresh()], drained: true }, /is pending though everything was drained/],
      [{ tasks: [done, { ...done, id: other }] }, /lease token t1 was also given/],
      [
        {
          tasks: [
            { ...done, idempotencyKey: 'k' },
            { ...fresh(), id: other, idempotencyKey: 'k' },
          ],
        },
        /idempotency key is also that of/,
      ],
      [
        {
          tasks: [done],
          starts: [
            { id: done.id, fence: 1 },
            { id: done.id, fence: 1 },
          ],
        },
        /begun twice under one fence/,
      ],
      [{ tasks: [done], starts: [{ id: done.id, fence: 2 }] }, /its last run was not recorded/],
      [
        {
          tasks: [
            { ...done, history: [done.history[0]!, claim, entry(3, { move: 'claim', to: 'running', op: 't2' })] },
          ],
        },
        /claim from running to running is not a legal move/,
      ],
      [{ tasks: [{ ...done, history: [...done.history, { ...complete, n: 4 }], revision: 4 }] }, /appears twice/],
    ]
    for (const [evidence, sentence] of stories) expect(checkHistory(evidence).join('\n')).toMatch(sentence)
  })
})

describe('a task for an application', () => {
  it('parses its payloads once, when they are looked at', () => {
    const task = new Task({ ...fresh(), input: '{"a":[1]}', output: 'AQI=', outputEncoding: 'base64' })
    expect(task.input).toEqual({ a: [1] })
    expect(task.input).toBe(task.input)
    expect(task.output).toEqual(new Uint8Array([1, 2]))
    expect(task.viewAt(NOW)).toBe('ready')
  })
})
