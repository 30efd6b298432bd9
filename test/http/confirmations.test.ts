/** The token of a preview: for one action, one selection, ten minutes. */
import { expect, it } from 'vitest'
import { Confirmations } from '../../src/http/confirmations.ts'

const TEN_MINUTES = 600_000
const which = { query: { type: 'a' } }

const begin = () => {
  let now = 1_000_000
  const confirmations = new Confirmations(Buffer.alloc(32, 7), () => now)
  const isTaken = (action: string, selection: unknown, token: unknown): boolean => {
    try {
      confirmations.demand(action, selection, token, '/dead-letters/replay/preview')
      return true
    } catch (error) {
      expect(error).toMatchObject({
        code: 'NOT_CONFIRMED',
        message: expect.stringContaining('POST /api/v1/dead-letters/replay/preview'),
      })
      return false
    }
  }
  return { confirmations, isTaken, pass: (span: number) => (now += span) }
}

it('holds for ten minutes, and not a millisecond longer', () => {
  const { confirmations, isTaken, pass } = begin()
  const token = confirmations.give('replay', which)
  pass(TEN_MINUTES)
  expect(isTaken('replay', which, token)).toBe(true)
  pass(1)
  expect(isTaken('replay', which, token)).toBe(false)
})

it('holds for its action and its selection only, and cannot be prolonged by hand', () => {
  const { confirmations, isTaken } = begin()
  const token = confirmations.give('replay', which)
  expect(isTaken('purge', which, token)).toBe(false)
  expect(isTaken('replay', { query: {} }, token)).toBe(false)
  const [, signature] = token.split('.')
  expect(isTaken('replay', which, `${(9_999_999_999_999).toString(36)}.${signature}`)).toBe(false)
  for (const nothing of [undefined, null, '', '.', 7, {}]) expect(isTaken('replay', which, nothing)).toBe(false)
})
