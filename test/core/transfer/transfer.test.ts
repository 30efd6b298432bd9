/** The rules of moving a task to another store, on tasks that have been through anything. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as machine from '../../../src/core/machine.ts'
import { applyChange, type TaskRecord } from '../../../src/core/task.ts'
import {
  arrive,
  compareCopies,
  copyOf,
  copyOfDeparted,
  depart,
  hasDeparted,
  isHeld,
  keyOf,
  readiness,
} from '../../../src/core/transfer/transfer.ts'
import { fresh, ID, NOW } from '../build.ts'

type Step =
  | 'claim'
  | 'complete'
  | 'fail'
  | 'release'
  | 'cancel'
  | 'retry'
  | 'replay'
  | 'archive'
  | 'unarchive'
  | 'expire'

const step = fc.constantFrom<Step>(
  'claim',
  'claim',
  'complete',
  'fail',
  'release',
  'cancel',
  'retry',
  'replay',
  'archive',
  'unarchive',
  'expire',
)
const steps = fc.array(step, { maxLength: 150 })
const few = fc.array(step, { maxLength: 30 })
const tags = fc.option(fc.dictionary(fc.constantFrom('moved', 'colour', 'a'), fc.string({ maxLength: 5 })))

const { cancel, retry, replay, archive, unarchive, expire } = machine
const BY_OPERATOR = { cancel, retry, replay, archive, unarchive, expire }

/** After these steps, those that the machine refuses left out. */
const walked = (start: TaskRecord, taken: readonly Step[], who: string): TaskRecord => {
  let task = start
  for (const [i, name] of taken.entries()) {
    const now = NOW + task.revision
    const actor = { now, by: who, op: `${who}-${i}` }
    const holder = { token: task.lease?.token ?? 'none' }
    try {
      const change =
        name === 'claim'
          ? machine.claim(task, { token: `${who}-${i}.1`, workerId: who, leaseTtl: 100, now: task.availableAt + now })
          : name === 'complete'
            ? machine.complete(task, holder, { text: '1', encoding: 'json' }, now)
            : name === 'fail'
              ? machine.fail(task, holder, { error: new Error('x'), permanent: i % 3 === 0, now, random: 0 })
              : name === 'release'
                ? machine.release(task, holder, now)
                : BY_OPERATOR[name](task, actor)
      if (change !== null) task = applyChange(task, change)
    } catch {
      // Not from here.
    }
  }
  return task
}

const task = fc
  .tuple(steps, tags)
  .map(([taken, given]) => walked({ ...fresh({ maxRetries: null }), tags: given }, taken, 'here'))
const movable = task.filter((one) => readiness(one) === 'go')
const actor = { now: NOW + 1_000_000, by: 'mover', op: 'move-1' }
const left = (one: TaskRecord): TaskRecord => applyChange(one, depart(one, actor, 'elsewhere:x'))
const copied = (one: TaskRecord): TaskRecord => copyOf(one, depart(one, actor, 'elsewhere:x'))
const opened = (copy: TaskRecord): TaskRecord => applyChange(copy, arrive(copy, actor, 'here:y'))

describe('a task that departs', () => {
  it('is archived under its own revision, with the tag, and nothing else of it changes', () => {
    fc.assert(
      fc.property(movable, (before) => {
        const after = left(before)
        expect(depart(before, actor, 'elsewhere:x').revision).toBe(before.revision)
        expect(after.status).toBe('archived')
        expect(after.archivedFrom).toBe(before.status === 'archived' ? before.archivedFrom : before.status)
        expect(after.tags).toEqual({ ...before.tags, moved: 'elsewhere:x' })
        const { status: _, archivedFrom: __, tags: ___, revision: ____, history, updatedAt: _____, ...rest } = after
        expect(before).toMatchObject(rest)
        expect(history.at(-1)).toMatchObject({ move: 'depart', reason: 'moved to elsewhere:x', n: before.revision + 1 })
      }),
    )
  })

  it('stays gone: it does not depart twice, does not come back, and no other move takes it', () => {
    fc.assert(
      fc.property(movable, fc.array(step, { maxLength: 20 }), (before, taken) => {
        const gone = left(before)
        expect(readiness(gone)).toBe('gone')
        expect(() => depart(gone, actor, 'elsewhere:y')).toThrow('cannot be moved')
        expect(() => machine.unarchive(gone, actor)).toThrow('moved to elsewhere:x')
        expect(walked(gone, taken, 'there')).toBe(gone)
      }),
    )
  })

  it('is not waited for: only a running task is, and it cannot be made to go', () => {
    fc.assert(
      fc.property(task, (one) => {
        expect(readiness(one) === 'wait').toBe(one.status === 'running')
        if (one.status === 'running') expect(() => depart(one, actor, 'x')).toThrow('cannot be moved')
        else expect(hasDeparted(one)).toBe(false)
      }),
    )
  })

  it('has never a longer address in its tag than a tag may have', () => {
    expect(left({ ...fresh(), tags: null }).tags).toEqual({ moved: 'elsewhere:x' })
    const change = depart(fresh(), actor, `postgres://${'🔑'.repeat(300)}`)
    expect(change.set.tags!['moved']!.length).toBeLessThanOrEqual(256)
    expect(change.set.tags!['moved']!.isWellFormed()).toBe(true)
  })
})

describe('a copy', () => {
  it('is the task as it is, fence and history and revision, without what is the store’s own, when it has been opened', () => {
    fc.assert(
      fc.property(movable, (one) => {
        const copy = copied({ ...one, mark: 7 })
        expect('mark' in copy).toBe(false)
        if (one.status !== 'pending') {
          expect(copy).toEqual(one)
          return
        }
        const open = opened(copy)
        const { history, revision, updatedAt: _, ...rest } = open
        expect(one).toMatchObject(rest)
        expect(revision).toBe(one.revision + 2)
        expect(history.slice(-2).map(({ move }) => move)).toEqual(['depart', 'arrive'])
      }),
    )
  })

  it('of a task that waits cannot be claimed, cancelled or changed before it is opened', () => {
    fc.assert(
      fc.property(movable, fc.array(step, { maxLength: 20 }), (one, taken) => {
        fc.pre(one.status === 'pending')
        expect(isHeld(one, copied(one))).toBe(true)
        expect(isHeld(left(one), copied(one))).toBe(true)
        expect(walked(copied(one), taken, 'there')).toEqual(copied(one))
        expect(isHeld(one, opened(copied(one)))).toBe(false)
      }),
    )
  })

  it('is made again from the original that has left: open where the task had ended, else as it waits', () => {
    fc.assert(
      fc.property(movable, (one) => {
        const given = { ...one, tags: one.tags === null || Object.keys(one.tags).length === 0 ? null : one.tags }
        fc.pre(given.tags?.['moved'] === undefined)
        const again = copyOfDeparted(left(given))
        const { updatedAt: _, ...rest } = copied(given)
        expect(again).toMatchObject(rest)
      }),
    )
  })

  it('keeps where a parked task waits; one that was made again from its original is due at once', () => {
    const parked = { step: 'nap', kind: 'sleep' as const, until: NOW + 90_000 }
    const entry = { n: 2, at: NOW, move: 'park', to: 'pending', by: 'w', op: 'o' } as const
    const base = fresh()
    const one = {
      ...base,
      revision: 2,
      history: [...base.history, entry],
      parked,
      availableAt: NOW + 90_000,
      tags: null,
    }
    expect(opened(copied(one))).toMatchObject({ parked, availableAt: NOW + 90_000, status: 'pending' })
    const again = copyOfDeparted(left(one))
    expect(again.tags).toBeNull()
    expect(opened(again)).toMatchObject({ availableAt: actor.now, status: 'pending' })
  })

  it('is known as the same, as stale after the original went on, as ahead after it went on itself', () => {
    fc.assert(
      fc.property(movable, steps, (one, taken) => {
        const on = walked(one, taken, 'later')
        expect(compareCopies(one, copied(one))).toBe('same')
        if (on.revision === one.revision) return
        expect(compareCopies(on, one)).toBe('stale')
        expect(compareCopies(one, on)).toBe('ahead')
      }),
    )
  })

  it('that went another way is foreign if it was claimed there, and may be replaced if it was not', () => {
    fc.assert(
      fc.property(movable, few, few, (one, a, b) => {
        const [here, there] = [walked(one, a, 'a'), walked(one, b, 'b')]
        if (here.revision === one.revision || there.revision === one.revision) return
        expect(compareCopies(here, there)).toBe(there.attempts > one.attempts ? 'foreign' : 'stale')
      }),
    )
  })

  it('of another task under the same id is foreign', () => {
    fc.assert(
      fc.property(movable, (one) => {
        const other = { ...one, history: one.history.map((entry) => ({ ...entry, op: `other ${entry.op}` })) }
        expect(compareCopies(one, other)).toBe('foreign')
      }),
    )
  })

  it('may take the place of what stayed behind when the task left, however far it has gone since', () => {
    fc.assert(
      fc.property(movable, steps, (one, taken) => {
        const abroad = one.status === 'pending' ? opened(copied(one)) : one
        expect(compareCopies(walked(abroad, taken, 'abroad'), left(one))).toBe('stale')
      }),
    )
  })

  it('may not take the place of what stayed behind of a later life', () => {
    const old = fresh()
    const later = walked(old, ['claim', 'fail'], 'w')
    expect(compareCopies(old, left(later))).toBe('foreign')
  })
})

describe('the key of a task', () => {
  const key = { key: 'k', taskId: ID, hash: 'h', expiresAt: NOW + 10, exact: false }
  const one = { ...fresh(), idempotencyKey: 'k' }

  it('goes with it while it stands for it, also past its own time', () => {
    expect(keyOf(one, key, NOW)).toBe(key)
    expect(keyOf(one, key, NOW + 1_000)).toBe(key)
  })

  it('does not go when its exact time is over, or when it stands for another task', () => {
    expect(keyOf(one, { ...key, exact: true }, NOW + 10)).toBeNull()
    expect(keyOf(one, { ...key, taskId: 'another' }, NOW)).toBeNull()
    expect(keyOf({ ...one, idempotencyKey: null }, key, NOW)).toBeNull()
    expect(keyOf(one, null, NOW)).toBeNull()
  })
})
