import { describe, expect, it } from 'vitest'
import type { SubmitOptions } from '../../src/core/submission.ts'
import { checkId, checkName, checkWorkerId, parseInstant } from '../../src/core/submission.ts'
import { ID, NOW, submission } from './build.ts'

const refused = (options: object, message: RegExp, code = 'INVALID_OPTION'): void =>
  expect(() => submission(options as SubmitOptions), JSON.stringify(options)).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) }),
  )

describe('the limits of a submission', () => {
  it('queue and type: 1 to 128 of A-Z a-z 0-9 _ . : / -', () => {
    for (const name of ['a', 'A-z_0.9:/', 'x'.repeat(128)]) {
      expect(submission({ queue: name }).task.queue).toBe(name)
      expect(submission({}, name).task.type).toBe(name)
    }
    for (const name of ['', 'x'.repeat(129), 'a b', 'ü', 'a\n', 'a\0', 'a*', null, 5]) {
      expect(() => checkName(name as string, 'queue')).toThrow(/must be 1 to 128 characters/)
      expect(() => submission({}, name as string)).toThrow(expect.objectContaining({ code: 'INVALID_TASK' }))
      refused({ queue: name }, /^queue /)
    }
  })

  it('priority: a whole number from −1000 to 1000', () => {
    for (const priority of [-1000, 0, 1000]) expect(submission({ priority }).task.priority).toBe(priority)
    for (const priority of [-1001, 1001, 0.5, Number.NaN, '5', null])
      refused({ priority }, /^priority must be a whole number/)
  })

  it('idempotency key: well-formed text of 1 to 512 characters', () => {
    expect(submission({ idempotencyKey: 'k'.repeat(512) }).task.idempotencyKey).toHaveLength(512)
    for (const idempotencyKey of ['', 'k'.repeat(513), 'a\0', '\uD800', 5])
      refused({ idempotencyKey }, /^idempotencyKey must be/)
    for (const idempotencyKey of ['replay:x', 'schedule:x', 'coalesce:x'])
      refused({ idempotencyKey }, /must not begin with/)
  })

  it('20 tags of 64 and 256 characters', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`tag${i}`, 'v']))
    expect(Object.keys(submission({ tags: many(20) }).task.tags!)).toHaveLength(20)
    refused({ tags: many(21) }, /^tags has 21 entries/)
    expect(submission({ tags: { ['n'.repeat(64)]: 'v'.repeat(256) } }).task.tags).not.toBeNull()
    refused({ tags: { ['n'.repeat(65)]: 'v' } }, /^tags\.n+ has a name/)
    refused({ tags: { '': 'v' } }, /has a name/)
    refused({ tags: { n: 'v'.repeat(257) } }, /^tags\.n must be text/)
    for (const tags of [{ n: 5 }, { n: null }, { n: '\uD800' }, [], 'x', null]) refused({ tags }, /^tags/)
  })

  it('an id is a UUID, whatever its letters', () => {
    expect(checkId(ID.toUpperCase())).toBe(ID)
    for (const id of ['', 'x', ID.slice(1), `${ID}0`, ID.replaceAll('-', ''), 5, null])
      expect(() => checkId(id as string)).toThrow(expect.objectContaining({ code: 'INVALID_TASK' }))
  })

  it('a worker id is text of 1 to 256 characters', () => {
    expect(checkWorkerId('host/1')).toBe('host/1')
    for (const id of ['', '  ', 'x'.repeat(257), '\0', null, 5])
      expect(() => checkWorkerId(id as string)).toThrow(expect.objectContaining({ code: 'INVALID_WORKER_ID' }))
  })

  it('counts are whole numbers of 0 or more; null is unlimited', () => {
    expect(submission({ maxRetries: null, maxReschedules: null }).task).toMatchObject({
      maxRetries: null,
      maxReschedules: null,
    })
    expect(submission({ maxRetries: 0, maxReschedules: 0 }).task).toMatchObject({ maxRetries: 0, maxReschedules: 0 })
    for (const bad of [-1, 1.5, Number.NaN, '3', Number.POSITIVE_INFINITY]) {
      refused({ maxRetries: bad }, /^maxRetries/)
      refused({ maxReschedules: bad }, /^maxReschedules/)
      refused({ maxAttempts: bad }, /^maxAttempts/)
    }
  })

  it('maxAttempts n is maxRetries n − 1, and 0 is unlimited', () => {
    expect([0, 1, 4].map((maxAttempts) => submission({ maxAttempts }).task.maxRetries)).toEqual([null, 0, 3])
  })

  it('a timeout is a duration of more than 0, or null for none', () => {
    expect(
      [submission({}), submission({ timeout: null }), submission({ timeout: '1s' })].map(({ task }) => task.timeout),
    ).toEqual([300_000, null, 1_000])
    refused({ timeout: 0 }, /^timeout is 0/)
    refused({ timeout: 30 }, /bare number/, 'INVALID_DURATION')
  })

  it('two names of one thing are refused together', () => {
    refused({ ttl: '1h', expiresAt: new Date(NOW) }, /^ttl and expiresAt cannot be combined/)
    refused({ at: new Date(NOW), delay: '1h' }, /^at and delay/)
    refused({ maxRetries: 1, maxAttempts: 2 }, /^maxRetries and maxAttempts/)
    refused({ maxRetries: null, maxAttempts: 2 }, /^maxRetries and maxAttempts/)
    expect(submission({ ttl: '1h', expiresAt: undefined as never }).task.expiresAt).toBe(NOW + 3_600_000)
  })

  it('an option that does not exist, or stands without the one it belongs to, is refused', () => {
    refused({ retries: 5 }, /^retries is not an option of submit/)
    refused({ idempotencyTtl: '1h' }, /needs an idempotencyKey/)
    refused({ onMismatch: 'ignore' }, /^onMismatch must be/)
  })
})

describe('the life of a key', () => {
  it('is 24 hours at least; exactly as long as it is told', () => {
    expect(submission({ idempotencyKey: 'k' }).key).toEqual({ expiresAt: NOW + 86_400_000, exact: false })
    expect(submission({ idempotencyKey: 'k', idempotencyTtl: '1h' }).key).toEqual({
      expiresAt: NOW + 3_600_000,
      exact: true,
    })
    expect(submission({}).key).toBeNull()
  })
})

describe('an instant', () => {
  it('is a Date, ISO 8601 with an offset, or epoch milliseconds', () => {
    const at = Date.UTC(2026, 0, 28, 17)
    for (const written of [
      new Date(at),
      '2026-01-28T17:00:00Z',
      '2026-01-28T18:00:00+01:00',
      '2026-01-28T17:00:00.000Z',
      at,
    ])
      expect(parseInstant(written, 'at')).toBe(at)
    expect(parseInstant(at + 0.4, 'at')).toBe(at)
  })

  it('without an offset, in seconds, or not at all is refused with the field named', () => {
    const nonsense: [unknown, RegExp][] = [
      ['2026-01-28T17:00:00', /offset/],
      ['2026-01-28', /offset/],
      ['tomorrow', /offset/],
      ['2026-13-40T99:00:00Z', /not an instant/],
      [1_769_619_600, /looks like seconds/],
      [Number.NaN, /not an instant/],
      [Number.POSITIVE_INFINITY, /not an instant/],
      [9e15, /years 1 and 9999/],
      [253_402_300_800_000, /years 1 and 9999/],
      ['+010000-01-01T00:00:00Z', /years 1 and 9999/],
      [new Date(8.64e15), /years 1 and 9999/],
      [new Date(-8.64e15), /years 1 and 9999/],
      [new Date('x'), /not an instant/],
      [null, /not an instant/],
      [{}, /not an instant/],
    ]
    for (const [value, message] of nonsense) {
      expect(() => parseInstant(value as string, 'expiresAt'), String(value)).toThrow(
        expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringMatching(/^expiresAt /) }),
      )
      expect(() => parseInstant(value as string, 'expiresAt')).toThrow(message)
    }
  })
})
