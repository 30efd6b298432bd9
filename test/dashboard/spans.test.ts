/** How a history becomes the stretches of a timeline, and times become words. */
import { describe, expect, test } from 'vitest'
import { ticksUpTo, WHOLE } from '../../dashboard/src/parts/charts/ticks.ts'
import { attemptsOf, spansOf } from '../../dashboard/src/text/spans.ts'
import { duration, exactDuration, relative, short, slotTimes } from '../../dashboard/src/text/words.ts'
import type { Entry, Task } from '../../dashboard/src/types.ts'

const at = (second: number): string => new Date(second * 1_000).toISOString()
const entry = (n: number, second: number, move: string, to: Entry['to'], facts: Partial<Entry> = {}): Entry => ({
  n,
  at: at(second),
  move,
  to,
  by: 'worker-1',
  ...facts,
})
const taskOf = (history: readonly Entry[], facts: Partial<Task> = {}): Task =>
  ({ history, attempts: history.filter(({ move }) => move === 'claim').length, availableAt: at(0), ...facts }) as Task
const told = (task: Task): string[] =>
  spansOf(task).map(({ kind, from, to, attempt }) =>
    [kind, attempt, from / 1_000, to === null ? '…' : to / 1_000].filter((one) => one !== undefined).join(' '),
  )

describe('the periods of a task', () => {
  test('are waiting, runs, and what lies between them', () => {
    const task = taskOf([
      entry(1, 0, 'submit', 'pending', { availableAt: at(5) }),
      entry(2, 7, 'claim', 'running'),
      entry(3, 8, 'fail', 'pending', { availableAt: at(10) }),
      entry(4, 10, 'claim', 'running'),
      entry(5, 12, 'reschedule', 'pending', { availableAt: at(12) }),
      entry(6, 13, 'claim', 'running'),
    ])
    expect(told(task)).toEqual([
      'delayed 0 5',
      'waiting 5 7',
      'running 1 7 8',
      'delayed 8 10',
      'running 2 10 12',
      'waiting 12 13',
      'running 3 13 …',
    ])
  })

  test('are not split by a request to stop, and end with the task', () => {
    const history = [
      entry(1, 0, 'submit', 'pending'),
      entry(2, 1, 'claim', 'running'),
      entry(3, 2, 'request-cancel', 'running'),
      entry(4, 3, 'fail', 'cancelled'),
      entry(5, 9, 'archive', 'archived'),
    ]
    expect(told(taskOf(history))).toEqual(['waiting 0 1', 'running 1 1 3'])
  })

  test('of a task that still waits reach to its time and beyond', () => {
    expect(told(taskOf([entry(1, 0, 'submit', 'pending')], { availableAt: at(60) }))).toEqual([
      'delayed 0 60',
      'waiting 60 …',
    ])
  })

  test('are not invented where the middle of the history was dropped; attempts are counted from the end', () => {
    const history = [
      entry(1, 0, 'submit', 'pending'),
      entry(40, 90, 'claim', 'running'),
      entry(41, 91, 'fail', 'pending', { availableAt: at(91) }),
      entry(42, 92, 'claim', 'running'),
    ]
    const task = taskOf(history, { attempts: 21 })
    expect(told(task)).toEqual(['running 20 90 91', 'waiting 91 92', 'running 21 92 …'])
    expect([...attemptsOf(task)]).toEqual([
      [40, 20],
      [42, 21],
    ])
  })
})

test('durations are as precise as needed', () => {
  expect([0, 999, 1_000, 1_250, 59_999, 60_000, 192_000, 7_500_000, 360_000_000].map(duration)).toEqual([
    '0 ms',
    '999 ms',
    '1 s',
    '1.3 s',
    '59 s',
    '1 m',
    '3 m 12 s',
    '2 h 5 m',
    '4 d 4 h',
  ])
  expect([relative(0, 0), relative(90_000, 0), relative(0, 3_900)]).toEqual(['now', 'in 1 m 30 s', '3 s ago'])
  expect([9_999, 12_345, 123_456, 1_000_000, 2_500_000].map(short)).toEqual(['9,999', '12.3k', '123k', '1M', '2.5M'])
})

test('slots name the day where it begins', () => {
  const noon = new Date(2026, 10, 15, 12).getTime()
  const slots = [0.5, 1, 13, 14].map((hours) => new Date(noon + hours * 3_600_000).toISOString())
  expect(slotTimes(slots, noon, null)).toEqual(['12:30', '13:00', '16 Nov 01:00', '02:00'])
})

test('a tick of an axis of counts stands where its label says, and none is there twice', () => {
  const format = (value: number): string => short(Math.round(value))
  for (const most of [1, 1.15, 1.725, 2.3, 5, 36, 780, 12_345, 999_999]) {
    const ticks = ticksUpTo(most, format, WHOLE)
    const labels = ticks.map(format)
    expect(labels, `up to ${most}`).toEqual(ticks.map((tick) => short(tick)))
    expect(new Set(labels).size).toBe(labels.length)
    expect(ticks.length).toBeGreaterThan(1)
    expect(ticks.length).toBeLessThan(7)
  }
})

test('an interval to be edited is exact, and as it is written', () => {
  expect([300_000, 5_400_000, 90_061_007, 500, 0].map(exactDuration)).toEqual([
    '5m',
    '1h30m',
    '1d1h1m1s7ms',
    '500ms',
    '0s',
  ])
})
