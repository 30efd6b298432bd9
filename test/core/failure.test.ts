import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CODES, HoldfastError, isContactLost, isHoldfastError } from '../../src/core/errors.ts'
import { isPermanent, PermanentError, RescheduleError, RetryableError } from '../../src/core/failure.ts'
import { describeError } from '../../src/core/values/error-facts.ts'
import { errorLine } from '../../src/core/values/error-line.ts'

const MOST = 8_192

describe('the text of an error', () => {
  it('[A13] is at most 8 KiB, well-formed and without NUL, whatever was thrown', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything(),
          fc.string({ unit: 'binary', maxLength: 20_000, size: 'max' }).map((message) => new Error(message)),
        ),
        (thrown) => {
          const { name, message, stack = '', at, attempt } = describeError(thrown, 5, 2)
          expect([at, attempt]).toEqual([5, 2])
          expect(Buffer.byteLength(name) + Buffer.byteLength(message) + Buffer.byteLength(stack)).toBeLessThanOrEqual(
            MOST,
          )
          for (const text of [name, message, stack]) {
            expect(text.isWellFormed()).toBe(true)
            expect(text).not.toContain('\0')
          }
          expect(name).not.toBe('')
        },
      ),
    )
  })

  it('keeps name, message and stack where there are any', () => {
    const error = describeError(new RangeError('too far'), 0, 1)
    expect(error).toMatchObject({ name: 'RangeError', message: 'too far' })
    expect(error.stack).toContain('RangeError: too far')
    expect(describeError('plain', 0, 1)).toEqual({ name: 'Thrown', message: 'plain', at: 0, attempt: 1 })
  })

  it('keeps the cause, its code and its frames, and theirs in turn', () => {
    const root = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' })
    const error = describeError(new TypeError('fetch failed', { cause: new Error('socket', { cause: root }) }), 0, 1)
    expect(error.cause).toMatchObject({ name: 'Error', message: 'socket' })
    expect(error.cause?.cause).toMatchObject({ message: 'connect ECONNREFUSED 127.0.0.1:1', code: 'ECONNREFUSED' })
    expect(error.cause?.cause?.stack).toContain('failure.test.ts')
    expect(errorLine(error)).toBe(
      'TypeError: fetch failed; caused by Error: socket; caused by Error: connect ECONNREFUSED 127.0.0.1:1',
    )
  })

  it("keeps a driver's code and detail, and the parts of an AggregateError", () => {
    const driver = Object.assign(new Error('duplicate key value'), { code: '23505', detail: 'Key (id)=(7) exists.' })
    expect(describeError(driver, 0, 1)).toMatchObject({ code: '23505', detail: 'Key (id)=(7) exists.' })
    expect(errorLine(describeError(driver, 0, 1))).toBe('Error: duplicate key value (23505); Key (id)=(7) exists.')
    const parts = describeError(new AggregateError([new Error('one'), new RangeError('two')]), 0, 1)
    expect(parts.message).toBe('one; two')
    expect(parts.errors).toMatchObject([{ message: 'one' }, { name: 'RangeError', message: 'two' }])
  })

  it('of a chain that is long, huge or contains itself has at most 8 KiB, and says what was thrown', () => {
    const own: Error & { cause?: unknown } = new Error('round')
    own.cause = own
    let long = new Error('x'.repeat(20_000))
    for (let i = 0; i < 100; i++) long = new Error(`level ${i} ${'"\n'.repeat(5_000)}`, { cause: long })
    const many = new AggregateError(Array.from({ length: 1_000 }, (_, i) => new Error(`part ${i}`, { cause: long })))
    const trap = Object.defineProperty(new Error('trap'), 'cause', {
      get() {
        throw new Error('do not look')
      },
    })
    for (const thrown of [own, long, many, trap]) {
      const error = describeError(thrown, 0, 1)
      expect(Buffer.byteLength(JSON.stringify(error))).toBeLessThanOrEqual(MOST)
      expect(error.message).not.toBe('')
    }
  })

  it('is cut between characters, never within one', () => {
    for (const letter of ['é', '€', '🎈']) {
      for (let extra = 0; extra < 4; extra++)
        expect(describeError('x'.repeat(extra) + letter.repeat(5_000), 0, 1).message).not.toContain('\uFFFD')
    }
  })
})

describe('the errors of a handler', () => {
  it('permanent is told by class or by name, retryable is not', () => {
    expect(isPermanent(new PermanentError('x'))).toBe(true)
    expect(isPermanent(Object.assign(new Error('x'), { name: 'PermanentError' }))).toBe(true)
    for (const other of [
      new RetryableError('x'),
      new Error('PermanentError'),
      'PermanentError',
      null,
      undefined,
      { name: 'PermanentError' },
    ])
      expect(isPermanent(other)).toBe(false)
  })

  it('a reschedule needs a duration', () => {
    expect(new RescheduleError('90s', { extendExpiration: '2m' })).toMatchObject({
      delay: 90_000,
      extendExpiration: 120_000,
      at: null,
    })
    expect(() => new RescheduleError(60 as never)).toThrow(/bare number/)
    expect(() => new RescheduleError('-1s')).toThrow(expect.objectContaining({ code: 'INVALID_DURATION' }))
  })
})

describe('HoldfastError', () => {
  it('[Y03] has a code of the table, a message and a fix', () => {
    const error = new HoldfastError('TASK_NOT_FOUND')
    expect(error.message).toBe(CODES.TASK_NOT_FOUND.text)
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'HoldfastError',
      code: 'TASK_NOT_FOUND',
      message: error.message,
      fix: CODES.TASK_NOT_FOUND.fix,
      details: {},
    })
    expect(isHoldfastError(error, 'TASK_NOT_FOUND')).toBe(true)
    expect(isHoldfastError(error, 'INTERNAL')).toBe(false)
    expect(isHoldfastError(new Error('x'))).toBe(false)
    class OfAnotherCopy extends Error {
      override readonly name = 'HoldfastError'
      readonly code = 'TASK_NOT_FOUND'
    }
    expect(isHoldfastError(new OfAnotherCopy(), 'TASK_NOT_FOUND')).toBe(true)
    expect(isHoldfastError(Object.assign(new OfAnotherCopy(), { code: 'ECONNREFUSED' }))).toBe(false)
    expect(isHoldfastError({ name: 'HoldfastError', code: 'TASK_NOT_FOUND' })).toBe(false)
    for (const { text, fix } of Object.values(CODES))
      expect([text.endsWith('.'), fix.endsWith('.')]).toEqual([true, true])
  })

  it('only lost contact leaves open whether a call took effect', () => {
    expect(Object.keys(CODES).filter((code) => isContactLost(new HoldfastError(code as keyof typeof CODES)))).toEqual([
      'STORE_UNAVAILABLE',
    ])
  })
})
