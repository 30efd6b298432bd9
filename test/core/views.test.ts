import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { STATUSES, type TaskRecord } from '../../src/core/task.ts'
import { matchesView, parseView, VIEW_ALIASES, VIEWS, type View, viewFilter, viewOf } from '../../src/core/views.ts'
import { fresh, NOW } from './build.ts'

const tasks = fc
  .record({
    status: fc.constantFrom(...STATUSES),
    availableAt: fc.integer({ min: NOW - 5, max: NOW + 5 }),
    retryCount: fc.nat(2),
  })
  .map((fields): TaskRecord => ({ ...fresh(), ...fields }))

const viewsOf = (task: TaskRecord): View[] => VIEWS.filter((view) => matchesView(task, viewFilter(view), NOW))

describe('views', () => {
  it('[B03] a task is in exactly one stored status, and its most telling name is one that fits', () => {
    fc.assert(
      fc.property(tasks, (task) => {
        const fitting = viewsOf(task)
        expect(fitting.filter((view) => (STATUSES as readonly string[]).includes(view))).toEqual([task.status])
        expect(fitting).toContain(viewOf(task, NOW))
      }),
    )
  })

  it('ready and scheduled part the pending ones; retrying is within scheduled; dead is failed', () => {
    fc.assert(
      fc.property(tasks, (task) => {
        const fitting = new Set(viewsOf(task))
        expect(fitting.has('ready') !== fitting.has('scheduled')).toBe(task.status === 'pending')
        if (fitting.has('retrying')) expect(fitting.has('scheduled')).toBe(true)
        expect(fitting.has('dead')).toBe(fitting.has('failed'))
      }),
    )
  })

  it('[B05] names of other designs are accepted, in any case; unknown ones are refused with what there is', () => {
    const names: Record<string, View> = {
      in_flight: 'running',
      claimed: 'running',
      succeeded: 'completed',
      success: 'completed',
      retry: 'retrying',
      dlq: 'dead',
    }
    for (const [name, view] of Object.entries(names))
      expect([parseView(name), parseView(name.toUpperCase())]).toEqual([view, view])
    for (const view of VIEWS) expect(parseView(view)).toBe(view)
    for (const nonsense of ['', 'finished', 'constructor', '__proto__']) {
      expect(() => parseView(nonsense)).toThrow(
        expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('ready') }),
      )
    }
    expect(Object.keys(VIEW_ALIASES)).toEqual(expect.arrayContaining(Object.keys(names)))
  })
})
