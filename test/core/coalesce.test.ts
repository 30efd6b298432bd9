import { describe, expect, it } from 'vitest'
import {
  type CoalesceOptions,
  coalesceKey,
  coalescingSubmission,
  joined,
  meeting,
  parseCoalesce,
} from '../../src/core/coalesce.ts'
import type { SubmitOptions } from '../../src/core/submission.ts'
import { applyChange, type TaskRecord } from '../../src/core/task.ts'
import { fresh, ID, NOW } from './build.ts'

const parse = (options: Omit<CoalesceOptions, 'key'> = {}) => parseCoalesce({ key: 'k', ...options }, {})
const refused = (options: object, message: RegExp, beside: SubmitOptions = {}): void =>
  expect(() => parseCoalesce(options as CoalesceOptions, beside), JSON.stringify(options)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringMatching(message) }),
  )
const json = (value: unknown) => ({ text: JSON.stringify(value), encoding: 'json' }) as const
const actor = (now: number) => ({ now, by: 'test', op: 'trigger' })
const made = (options: Omit<CoalesceOptions, 'key'> = {}, beside: SubmitOptions = {}, now = NOW) =>
  coalescingSubmission('work', json(1), beside, parse(options), {
    now,
    id: ID,
    op: 'first',
    by: 'test',
    key: 'coalesce:work#k',
  })
const trigger = (
  task: TaskRecord,
  options: Omit<CoalesceOptions, 'key'>,
  now: number,
  input: unknown = 1,
  expiresAt: number | null = null,
) => joined(task, actor(now), parse(options), { input: JSON.stringify(input), encoding: 'json', expiresAt })

describe('the options of coalesce', () => {
  it('are a key, durations, and which input counts: the latest unless said otherwise', () => {
    expect(parseCoalesce({ key: 'k'.repeat(512) }, {})).toEqual({
      key: 'k'.repeat(512),
      delay: null,
      maxWait: null,
      input: 'latest',
    })
    expect(parse({ delay: '5s', maxWait: '1m', input: 'first' })).toEqual({
      key: 'k',
      delay: 5_000,
      maxWait: 60_000,
      input: 'first',
    })
  })

  it('are refused with the field named', () => {
    for (const key of ['', 'k'.repeat(513), '\0', '\uD800', 5, undefined]) refused({ key }, /^coalesce\.key must be/)
    refused({ key: 'k', maxWait: '1m' }, /^coalesce\.maxWait needs a delay/)
    refused({ key: 'k', input: 'last' }, /^coalesce\.input must be 'latest' or 'first'/)
    refused({ key: 'k', debounce: '1s' }, /^debounce is not an option of coalesce/)
    expect(() => parse({ delay: 5 as never })).toThrow(expect.objectContaining({ code: 'INVALID_DURATION' }))
    refused(['k'], /must be an object/)
  })

  it('exclude what says otherwise which task it is, or when it is due', () => {
    for (const beside of [
      { idempotencyKey: 'x' },
      { idempotencyTtl: '1h' },
      { onMismatch: 'existing' },
      { id: ID },
      { at: NOW },
      { delay: '1s' },
    ] as const)
      refused({ key: 'k' }, new RegExp(`^${Object.keys(beside)[0]} cannot be used with coalesce`), beside)
  })
})

describe('the name of the key', () => {
  const digest = (text: string): string => `${text.length}`

  it('is different for each pair of type and key', () => {
    const names = [
      ['a', 'b#c'],
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a', '#b'],
    ].map(([type, key]) => coalesceKey(type!, key!, digest))
    expect(new Set(names).size).toBe(names.length)
    expect(coalesceKey('work', 'doc 7', digest)).toBe('coalesce:work#doc 7')
  })

  it('is shortened where it would be longer than a key may be', () => {
    expect(coalesceKey('work', 'k'.repeat(498), digest)).toHaveLength(512)
    expect(coalesceKey('work', 'k'.repeat(499), digest)).toBe('coalesce:#513')
  })
})

describe('the task of a first trigger', () => {
  it('is due at once, or after the delay, or after maxWait if that is shorter', () => {
    expect(made().task.availableAt).toBe(NOW)
    expect(made({ delay: '5s' }).task.availableAt).toBe(NOW + 5_000)
    expect(made({ delay: '5s', maxWait: '2s' }).task.availableAt).toBe(NOW + 2_000)
  })

  it('has a key of its own that no other work equals', () => {
    const { task, key } = made()
    expect(task.idempotencyKey).toBe('coalesce:work#k')
    expect(key).toMatchObject({ key: 'coalesce:work#k', taskId: ID, hash: ID, exact: false })
  })
})

describe('a trigger that meets a task', () => {
  it('joins it while it waits and was never claimed', () => {
    const task = fresh({ ttl: '1h' })
    expect(meeting(task, NOW)).toBe('join')
    expect(meeting(task, NOW + 3_599_999)).toBe('join')
    expect(meeting(task, NOW + 3_600_000), 'past its expiry').toBe('expire')
    expect(meeting(null, NOW)).toBe('replace')
    expect(meeting({ ...task, attempts: 1 }, NOW), 'claimed once, and released or retried').toBe('replace')
    expect(meeting({ ...task, attempts: 1 }, NOW + 3_600_000)).toBe('replace')
    for (const status of ['running', 'completed', 'failed', 'cancelled', 'expired', 'archived'] as const)
      expect(meeting({ ...task, status }, NOW), status).toBe('replace')
  })

  it('changes its input alone without a delay, and nothing when that is the same', () => {
    const { task } = made()
    expect(trigger(task, {}, NOW + 500, 1)).toBeNull()
    const change = trigger(task, {}, NOW + 500, 2)!
    expect(change.entry).toMatchObject({ move: 'amend', op: 'trigger', changed: ['input'] })
    const after = applyChange(task, change)
    expect([after.input, after.availableAt, after.createdAt]).toEqual(['2', NOW, NOW])
  })

  it('leaves the first input where that counts', () => {
    const { task } = made({ delay: '5s' })
    expect(trigger(task, { input: 'first' }, NOW, 2)).toBeNull()
    expect(applyChange(task, trigger(task, { delay: '5s', input: 'first' }, NOW + 1_000, 2)!)).toMatchObject({
      input: '1',
      availableAt: NOW + 6_000,
    })
  })

  it('makes it due a delay from now, and never later than maxWait from its creation', () => {
    const wish = { delay: '5s', maxWait: '12s' } as const
    let { task } = made(wish)
    const dueAfter = (ms: number): number => {
      const change = trigger(task, wish, NOW + ms)
      if (change !== null) task = applyChange(task, change)
      return task.availableAt - NOW
    }
    expect([4_000, 7_000, 11_000, 20_000].map(dueAfter)).toEqual([9_000, 12_000, 12_000, 12_000])
    expect(task.revision, 'what changes nothing is not written').toBe(3)
  })

  it('gives it as much time to begin as a task of its own would have', () => {
    const { task } = made({}, { ttl: '1h' })
    expect(trigger(task, {}, NOW + 1_000, 1, NOW + 1_800_000), 'a shorter time changes nothing').toBeNull()
    expect(trigger(task, {}, NOW + 1_000, 1, NOW + 3_601_000)!.set.expiresAt).toBe(NOW + 3_601_000)
    expect(trigger(task, {}, NOW + 1_000, 1, null)!.set.expiresAt).toBeNull()
    expect(trigger(made().task, {}, NOW + 1_000, 1, NOW + 2_000)).toBeNull()
  })
})
