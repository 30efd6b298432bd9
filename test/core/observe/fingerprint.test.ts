/** Which errors are the same error. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fingerprintOf, patternOf } from '../../../src/core/observe/fingerprint.ts'

const of = (message: string, name = 'Error'): string => fingerprintOf({ name, message }).fingerprint

describe('the pattern of a message', () => {
  it.each([
    ['connect ECONNREFUSED 127.0.0.1:5432', 'connect ECONNREFUSED #:#'],
    ['user 42 has no account', 'user # has no account'],
    ['took 12.5s', 'took #s'],
    ['no task 01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47', 'no task #'],
    ['object 9f86d081884c7d65 at 0xDEADBEEF', 'object # at #'],
    ['deadbeef and facade are words', 'deadbeef and facade are words'],
    [`Cannot read properties of undefined (reading 'total')`, `Cannot read properties of undefined (reading 'total')`],
    ['relation "users_2024" does not exist', 'relation "users_#" does not exist'],
    [`user 'bob' is unknown`, `user '…' is unknown`],
    [`can't open "a b.txt"`, `can't open "…"`],
    [`'a' isn't 'b'`, `'…' isn't '…'`],
    ['first\n  second\tthird ', 'first second third'],
    ['', ''],
  ])('of %j is %j', (message, pattern) => {
    expect(patternOf(message)).toBe(pattern)
  })

  it('is the same whatever numbers, ids and quoted texts it has', () => {
    const variable = fc.record({
      n: fc.nat(),
      id: fc.uuid(),
      hex: fc.stringMatching(/^[0-9][0-9a-f]{7,40}$/),
      quoted: fc.string({ minLength: 1 }).filter((inner) => !/["\s]/.test(inner)),
    })
    fc.assert(
      fc.property(variable, variable, (a, b) => {
        const [one, other] = [a, b].map(({ n, id, hex, quoted }) => `order ${n} of ${id} (${hex}) said "${quoted}"`)
        expect(of(one!)).toBe(of(other!))
      }),
    )
  })
})

describe('a fingerprint', () => {
  it('tells names and words apart', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[g-z ]{0,60}$/), fc.stringMatching(/^[g-z ]{0,60}$/), (a, b) => {
        expect(of(a) === of(b)).toBe(patternOf(a) === patternOf(b))
      }),
    )
    expect(of('boom', 'TypeError')).not.toBe(of('boom', 'RangeError'))
  })

  it('tells bugs apart that differ in the name of a property, a table, or in their cause', () => {
    expect(of(`(reading 'total')`)).not.toBe(of(`(reading 'email')`))
    expect(of('relation "users" does not exist')).not.toBe(of('relation "orders" does not exist'))
    const fetching = (message: string) =>
      fingerprintOf({ name: 'TypeError', message: 'fetch failed', cause: { name: 'Error', message } })
    expect(fetching('connect ECONNREFUSED 10.0.0.1:80').fingerprint).toBe(
      fetching('connect ECONNREFUSED 10.0.0.2:81').fingerprint,
    )
    expect(fetching('connect ECONNREFUSED 10.0.0.1:80').fingerprint).not.toBe(
      fetching('getaddrinfo ENOTFOUND a.b').fingerprint,
    )
    expect(fetching('connect ECONNREFUSED 10.0.0.1:80').pattern).toBe(
      'fetch failed; caused by Error: connect ECONNREFUSED #:#',
    )
  })

  it('is short, and there for a task without an error', () => {
    fc.assert(fc.property(fc.string(), (message) => /^[0-9a-z]{11}$/.test(of(message))))
    expect(fingerprintOf(null)).toMatchObject({ name: 'Error', pattern: '' })
  })

  it('of a huge message takes no time', () => {
    const started = process.hrtime.bigint()
    for (const part of [`'`, 'a', '1', 'ab1', ' ']) patternOf(part.repeat(1_000_000))
    expect(Number(process.hrtime.bigint() - started) / 1e6).toBeLessThan(500)
  })
})
