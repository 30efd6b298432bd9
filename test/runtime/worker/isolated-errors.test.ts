/** What an error keeps on its way from a child to the worker. */
import { describe, expect, it } from 'vitest'
import { isPermanent, rescheduleWish } from '../../../src/core/failure.ts'
import { describeError } from '../../../src/core/values/error-facts.ts'
import { HoldfastError, PermanentError, RescheduleError, RetryableError } from '../../../src/index.ts'
import { errorOf, errorText } from '../../../src/runtime/worker/isolate/errors.ts'

/** There and back, as text. */
const crossed = (thrown: unknown): Error => errorOf(JSON.parse(JSON.stringify(errorText(thrown))))

describe('an error that crosses from a child', () => {
  it('keeps name, message, code, stack and its chain of causes', () => {
    const root = Object.assign(new RangeError('too far'), { code: 'ERANGE' })
    const error = new HoldfastError('STORE_BUSY', 'locked', {}, new TypeError('wrong', { cause: root }))
    const back = crossed(error)
    expect(back).toMatchObject({ name: 'HoldfastError', message: 'locked', code: 'STORE_BUSY', stack: error.stack })
    expect(back.cause).toMatchObject({ name: 'TypeError', message: 'wrong' })
    expect((back.cause as Error).cause).toMatchObject({ name: 'RangeError', message: 'too far', code: 'ERANGE' })
  })

  it('keeps the detail of a driver and the parts of an AggregateError, so that the task says the same as without isolation', () => {
    const parts = [Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' }), new Error('refused')]
    const error = Object.assign(new AggregateError(parts, ''), { detail: 'Key (id)=(1) already exists.' })
    const { stack: _, ...described } = describeError(error, 0, 1)
    expect(describeError(crossed(error), 0, 1)).toMatchObject({ ...described, errors: [{ code: 'EHOSTUNREACH' }, {}] })
  })

  it('keeps its kind, also under a name of its own', () => {
    class NoSuchUser extends PermanentError {
      override readonly name = 'NoSuchUser'
    }
    expect(isPermanent(crossed(new NoSuchUser('ann')))).toBe(true)
    expect(crossed(new NoSuchUser('ann')).name).toBe('NoSuchUser')
    expect(crossed(new RetryableError('again'))).toBeInstanceOf(RetryableError)
    expect(isPermanent(crossed(new Error('plain')))).toBe(false)
    const wish = crossed(new RescheduleError('60s', { at: 1_800_000_000_000, extendExpiration: '2m' }))
    expect(rescheduleWish(wish)).toEqual({
      delay: 60_000,
      at: 1_800_000_000_000,
      extendExpiration: 120_000,
      pause: null,
    })
    expect(rescheduleWish(crossed(new RescheduleError('1s', { pause: 'queue' })))).toMatchObject({ pause: 'queue' })
    expect(crossed(new RescheduleError('1s'))).toMatchObject({ delay: 1_000, at: null, extendExpiration: 0 })
  })

  it('that asks for a time out of range asks for the nearest that can be kept, and for one that is none it fails', () => {
    const wish = crossed(Object.assign(new RescheduleError(0), { delay: 1e300, at: 1e300, extendExpiration: -1 }))
    expect(rescheduleWish(wish)).toEqual({
      delay: 3_155_760_000_000,
      at: 253_402_300_799_999,
      extendExpiration: 0,
      pause: null,
    })
    const none = crossed(Object.assign(new RescheduleError(0), { delay: Number.NaN }))
    expect(rescheduleWish(none)).toBeNull()
    expect(none).toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining('delay') })
  })

  it.each<[what: string, thrown: unknown, name: string, message: string]>([
    ['a text', 'boom', 'Thrown', 'boom'],
    ['nothing', undefined, 'Thrown', 'undefined'],
    ['an object', { a: 1 }, 'Thrown', '{"a":1}'],
    [
      'a getter that throws',
      {
        get message() {
          throw new Error('no')
        },
        toJSON() {
          throw new Error('no')
        },
      },
      'Thrown',
      'an error that cannot be printed',
    ],
  ])('may be %s', (_, thrown, name, message) => {
    expect(crossed(thrown)).toMatchObject({ name, message })
  })

  it('is cut where its causes go round in a circle', () => {
    const error = new Error('a')
    error.cause = error
    expect(crossed(error).message).toBe('a')
  })
})
