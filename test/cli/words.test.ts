/** The words of the command line, without running it: history lines, reasons, instants, JSON. */
import { describe, expect, it } from 'vitest'
import { errorFacts } from '../../src/cli/output/errors.ts'
import { happened, historyLine } from '../../src/cli/output/history-line.ts'
import { delay, instant, printable, relative, table } from '../../src/cli/output/render.ts'
import { timelineLines } from '../../src/cli/output/timeline-line.ts'
import { parseJson } from '../../src/cli/program/input.ts'
import { CODES, type Code, HoldfastError } from '../../src/core/errors.ts'
import { connect, type HistoryEntry, MOVES } from '../../src/index.ts'

const NOON = Date.parse('2026-01-28T14:30:00Z')
const FIVE = Date.parse('2026-01-28T17:00:00Z')

describe('instants and spans', () => {
  it('an instant has milliseconds only when they are not zero', () => {
    expect(instant(FIVE)).toBe('2026-01-28T17:00:00Z')
    expect(instant(FIVE + 7)).toBe('2026-01-28T17:00:00.007Z')
  })

  it('relative times read naturally', () => {
    expect(`expires_at: ${instant(FIVE)} (${relative(FIVE, NOON)})`).toBe(
      'expires_at: 2026-01-28T17:00:00Z (in 2h 30m)',
    )
    expect(relative(FIVE, FIVE - 3_599_800)).toBe('in 1h')
    expect(relative(NOON, NOON + 320)).toBe('320ms ago')
    expect(relative(NOON, NOON)).toBe('now')
  })

  it('a delay has one unit', () => {
    expect([0, 412, 1_000, 1_500, 60_000].map(delay)).toEqual(['+0s', '+412ms', '+1s', '+1.5s', '+60s'])
  })

  it('untrusted text cannot control the terminal', () => {
    expect(printable('a\u001b[2Jb\nc\u202e\u0000')).toBe('a\\u001b[2Jb\\nc\\u202e\\u0000')
  })

  it('a table is as wide as its widest cells', () => {
    const text = table<string>(
      [
        { title: 'NAME', cell: (row) => row },
        { title: 'N', cell: (row) => String(row.length), align: 'right' },
      ],
      ['abcdefghij', 'b'],
    )
    expect(text).toBe('NAME         N\nabcdefghij  10\nb            1\n')
  })
})

describe('a line of history', () => {
  const entry = (facts: Partial<HistoryEntry>): HistoryEntry => ({
    n: 2,
    at: NOON,
    move: 'submit',
    to: 'pending',
    by: 'worker-1',
    op: 'op',
    ...facts,
  })

  it.each<[facts: Partial<HistoryEntry>, line: string]>([
    [{ n: 1, expiresAt: FIVE }, 'Version 1: pending (created, expires_at: 2026-01-28T17:00:00Z)'],
    [{ n: 1, availableAt: NOON + 60_000 }, 'Version 1: pending (created, available_at: +60s)'],
    [{ move: 'claim', to: 'running' }, 'Version 2: running (claimed by worker-1)'],
    [{ move: 'complete', to: 'completed' }, 'Version 2: completed (by worker-1)'],
    [
      { move: 'reschedule', delay: 60_000, availableAt: NOON + 60_000, count: 1 },
      'Version 2: pending (rescheduled, available_at: +60s, count: 1)',
    ],
    [
      { move: 'reschedule', to: 'failed', error: 'Max reschedules (3) exceeded' },
      'Version 2: failed (error: Max reschedules (3) exceeded)',
    ],
    [
      { move: 'fail', availableAt: NOON + 412, count: 2, error: 'boom' },
      'Version 2: pending (failed, available_at: +412ms, retry_count: 2, error: boom)',
    ],
    [{ move: 'fail', to: 'failed', error: 'boom' }, 'Version 2: failed (by worker-1, error: boom)'],
    [{ move: 'fail', to: 'cancelled', error: 'boom' }, 'Version 2: cancelled (stopped as requested, error: boom)'],
    [
      { move: 'lose-lease', availableAt: NOON + 9, count: 1, error: 'lease expired' },
      'Version 2: pending (lease expired, found by worker-1, available_at: +9ms, retry_count: 1)',
    ],
    [
      { move: 'time-out', availableAt: NOON + 9, count: 1, error: 'timed out after 5m' },
      'Version 2: pending (timed out after 5m, available_at: +9ms, retry_count: 1)',
    ],
    [{ move: 'release' }, 'Version 2: pending (released by worker-1)'],
    [{ move: 'expire', to: 'expired', expiredAt: FIVE }, 'Version 2: expired (expired_at: 2026-01-28T17:00:00Z)'],
    [
      { move: 'cancel', to: 'cancelled', by: 'ann', reason: 'twice' },
      'Version 2: cancelled (cancelled by ann, reason: twice)',
    ],
    [{ move: 'request-cancel', to: 'running', by: 'ann' }, 'Version 2: running (cancel requested by ann)'],
    [{ move: 'retry', by: 'ann', availableAt: NOON, count: 3 }, 'Version 2: pending (retried by ann, retry_count: 3)'],
    [
      { move: 'retry', by: 'ann', to: 'failed', error: 'retried by operator' },
      'Version 2: failed (retried by ann, no retries left)',
    ],
    [
      { move: 'replay', by: 'ann', availableAt: NOON, count: 1 },
      'Version 2: pending (replayed by ann, replay_count: 1)',
    ],
    [{ move: 'archive', to: 'archived', by: 'ann' }, 'Version 2: archived (archived by ann)'],
    [{ move: 'unarchive', to: 'completed', by: 'ann' }, 'Version 2: completed (unarchived by ann)'],
    [{ move: 'hop', by: 'a later release' }, 'Version 2: pending (hop by a later release)'],
  ])('%j', (facts, line) => {
    expect(historyLine(entry(facts))).toBe(line)
  })

  it('has words for every move that the machine knows', () => {
    for (const [move, { ways }] of Object.entries(MOVES)) {
      // These are in the journal, not in the history.
      if (move === 'step' || move === 'signal') continue
      for (const status of Object.values(ways).flat())
        expect(happened(entry({ move, to: status, error: 'e', step: 's', expiredAt: FIVE }))).not.toMatch(
          new RegExp(`^${move} by|undefined`),
        )
    }
  })

  it('says where the middle was dropped', () => {
    const last = Array.from({ length: 99 }, (_, i) => entry({ n: 50 + i, move: 'claim', to: 'running' }))
    const lines = timelineLines([entry({ n: 1 }), ...last], false)
    expect(lines[1]).toBe('Versions 2 to 49: dropped (the first and the last 99 are kept)')
    // A step is a version too, and not in the history.
    expect(timelineLines([entry({ n: 1 }), entry({ n: 5, move: 'claim', to: 'running' })], false)).toHaveLength(2)
  })

  it('prints the history of a task that slept twice in seven versions', async () => {
    let now = NOON
    const client = await connect('memory:', {
      name: 'test',
      clock: { wall: () => now, mono: () => now, after: () => () => {} },
    })
    const { id } = await client.submit('poll', {})
    for (const workerId of ['worker-1', 'worker-2']) {
      await (await client.claim(id, { workerId })).reschedule('60s')
      now += 60_000
    }
    await (await client.claim(id, { workerId: 'worker-1' })).complete()
    expect(timelineLines(await client.history(id), false)).toEqual([
      'Version 1: pending (created)',
      'Version 2: running (claimed by worker-1)',
      'Version 3: pending (rescheduled, available_at: +60s, count: 1)',
      'Version 4: running (claimed by worker-2)',
      'Version 5: pending (rescheduled, available_at: +60s, count: 2)',
      'Version 6: running (claimed by worker-1)',
      'Version 7: completed (by worker-1)',
    ])
  })
})

describe('JSON as people type it', () => {
  it.each<[text: string, value: unknown]>([
    ['null', null],
    ['""', ''],
    ['{}', {}],
    [' [1.5e3, -7] ', [1500, -7]],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['100000000000000000000', 1e20],
    ['"\\u0000\\ud800"', '\u0000\ud800'],
    ['{"__proto__":1}', JSON.parse('{"__proto__":1}')],
  ])('%s is taken as it is', (text, value) => {
    expect(parseJson(text)).toEqual(value)
  })

  it.each<[text: string, position: number]>([
    ['nope', 1],
    ['{"a":tru}', 8],
    ['{a:1}', 1],
    ['[1,]', 3],
    ['[1', 2],
    ['"abc', 4],
    ['\ufeff{}', 0],
    ['{}{}', 2],
    ["{'a':1}", 1],
    ['{"a":1\n"b":2}', 7],
    [`["${'x'.repeat(100)}", y, "${'z'.repeat(100)}"]`, 105],
  ])('%s is refused where it goes wrong', (text, position) => {
    expect(() => parseJson(text)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', details: { field: '--input', position } }),
    )
  })
})

describe('advice at a shell', () => {
  const OF_THE_LIBRARY = /deadLetters\.|client\.|\w+: true|connect\(|worker\(|on connect|with create/

  it('names no call of the library', () => {
    expect(CODES.GROUP_NOT_FOUND.fix).toMatch(OF_THE_LIBRARY)
    const advice = (Object.keys(CODES) as Code[]).map((code) => [code, errorFacts(new HoldfastError(code, 'x')).fix])
    expect(advice.filter(([, fix]) => OF_THE_LIBRARY.test(fix!))).toEqual([])
  })
})
