/** SPEC 9.3 to 9.7: which tasks the limits of a queue permit. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { claimOrder } from '../../../src/core/claim-order.ts'
import { runsOf } from '../../../src/core/flow/full-groups.ts'
import { type ClaimLimits, type GroupTurns, groupOf, permitted } from '../../../src/core/flow/group-turns.ts'
import { checkLimits } from '../../../src/core/flow/limits.ts'
import type { TaskRecord } from '../../../src/core/task.ts'
import { task } from '../../../src/testing/conformance/build.ts'

const turns: GroupTurns = { perGroup: null, after: null, mostEach: 1_000, without: [], only: null, passed: [] }
const limits = (more: Partial<GroupTurns> = {}, concurrency: number | null = null): ClaimLimits => ({
  concurrency,
  notAfter: null,
  turns: { ...turns, ...more },
})

const groupsOf = (tasks: readonly TaskRecord[]): string => tasks.map((one) => groupOf(one) || '-').join(' ')
const waiting = (...groups: string[]): TaskRecord[] =>
  groups.map((group, i) => task(i + 1, { group: group === '-' ? null : group }))

describe('turns', () => {
  it('go round the groups, however long their lines', () => {
    const { tasks } = permitted(waiting('a', 'a', 'a', 'a', 'b', 'c', '-', 'b'), [], limits(), 6, 0)
    expect(groupsOf(tasks)).toBe('- a b c a b')
  })

  it('begin behind the group that had the last', () => {
    expect(groupsOf(permitted(waiting('a', 'b', 'c'), [], limits({ after: 'b' }), 3, 0).tasks)).toBe('c a b')
    expect(groupsOf(permitted(waiting('a', 'b', 'c'), [], limits({ after: 'z' }), 3, 0).tasks)).toBe('a b c')
  })

  it('never give a group more than its places, its share and the queue its places', () => {
    const group = fc.constantFrom('a', 'b', 'c', '-')
    fc.assert(
      fc.property(
        fc.array(fc.tuple(group, fc.integer({ min: -1, max: 1 })), { maxLength: 30 }),
        fc.array(group, { maxLength: 10 }),
        fc.record({
          perGroup: fc.option(fc.integer({ min: 1, max: 3 })),
          concurrency: fc.option(fc.integer({ min: 1, max: 12 })),
          mostEach: fc.integer({ min: 1, max: 4 }),
          limit: fc.integer({ min: 0, max: 20 }),
          after: fc.option(fc.constantFrom('', 'a', 'b', 'c', 'zz')),
        }),
        (lines, runningGroups, { perGroup, concurrency, mostEach, limit, after }) => {
          const ready = lines
            .map(([name, priority], i) => task(i + 1, { group: name === '-' ? null : name, priority }))
            .sort(claimOrder)
          const running = waiting(...runningGroups)
          const bound = limits({ perGroup, mostEach, after }, concurrency)
          const { tasks, full, isHeldBack } = permitted(ready, running, bound, limit, 0)
          expect(tasks.length).toBeLessThanOrEqual(limit)
          expect(new Set(tasks).size).toBe(tasks.length)
          if (concurrency !== null && tasks.length > 0)
            expect(tasks.length + running.length).toBeLessThanOrEqual(concurrency)
          const count = (some: readonly TaskRecord[], name: string): number =>
            some.filter((one) => groupOf(one) === name).length
          for (const name of ['a', 'b', 'c']) {
            expect(count(tasks, name)).toBeLessThanOrEqual(mostEach)
            if (perGroup !== null && count(tasks, name) > 0)
              expect(count(tasks, name) + count(running, name)).toBeLessThanOrEqual(perGroup)
            if (full.includes(name)) expect(count(tasks, name) + count(running, name)).toBeGreaterThanOrEqual(perGroup!)
          }
          // Nothing is left without a reason.
          const left = ready.filter((one) => !tasks.includes(one))
          const places = concurrency === null ? Number.POSITIVE_INFINITY : concurrency - running.length
          if (tasks.length < Math.min(limit, places))
            for (const one of left) {
              const name = groupOf(one)
              expect(count(tasks, name) >= mostEach || full.includes(name)).toBe(true)
            }
          if (full.length > 0) expect(isHeldBack).toBe(true)
        },
      ),
    )
  })
})

describe('runs of full groups', () => {
  const names = (from: number, to: number): string[] =>
    Array.from({ length: to - from }, (_, i) => `g${String(from + i).padStart(4, '0')}`)

  it('end where a group was leased from', () => {
    const runs = runsOf([...names(0, 40), ...names(41, 80)], ['g0040'], null)
    expect(runs.map((run) => [run[0], run.at(-1)])).toEqual([
      ['g0000', 'g0039'],
      ['g0041', 'g0079'],
    ])
  })

  it('do not reach over the place where the claim began', () => {
    const runs = runsOf([...names(50, 80), ...names(0, 20)], [], 'g0049')
    expect(runs.map((run) => [run[0], run.at(-1)])).toEqual([
      ['g0050', 'g0079'],
      ['g0000', 'g0019'],
    ])
  })

  it('are not remembered when they are short', () => {
    expect(runsOf(names(0, 5), [], null)).toEqual([])
  })
})

describe('limits', () => {
  it.each([
    [{}, /names no limit/],
    [{ concurrency: 0 }, /concurrency must be at least 1: pause the queue to stop it/],
    [{ perGroup: 0 }, /perGroup must be at least 1: pause the group to stop it/],
    [{ concurrency: -1 }, /concurrency must be a whole number/],
    [{ perGroup: 1.5 }, /perGroup/],
    [{ rate: '60' }, /rate/],
    [{ burst: 2 }, /needs a rate/],
    [{ perGroup: 1, fair: false }, /fair/],
    [{ concurency: 3 }, /did you mean concurrency/],
  ])('%j are refused', (options, message) => {
    expect(() => checkLimits(options as object)).toThrow(message)
  })

  it('leave out what is undefined', () => {
    expect(checkLimits({ concurrency: 3, perGroup: undefined as never })).toEqual({ concurrency: 3 })
  })
})
