import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type KeyRecord, keyIsLive, keySubject } from '../../../src/core/idempotency.ts'
import { canonicalJson, cleanText, decodePayload, encodePayload } from '../../../src/core/values/payload.ts'

const encode = (value: unknown, limit = 1_048_576) => encodePayload(value, 'input', limit)
const roundTrip = (value: unknown): unknown => {
  const { text, encoding } = encode(value)
  return decodePayload(text, encoding)
}
const nested = (depth: number): unknown => {
  let value: unknown = 'bottom'
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { in: value }
  return value
}

describe('a payload', () => {
  it('any JSON value comes back as it went in', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(roundTrip(value)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('any bytes come back as they went in, also from a part of a buffer', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(20), (bytes, offset) => {
        const part = bytes.subarray(Math.min(offset, bytes.length))
        expect(roundTrip(part)).toEqual(new Uint8Array(part))
      }),
    )
    expect(roundTrip(Buffer.from('abc'))).toEqual(new Uint8Array([97, 98, 99]))
    expect(encode(new Uint8Array()).encoding).toBe('base64')
  })

  it('null, texts, objects without a prototype and those of another realm are fine', () => {
    for (const value of [
      null,
      '',
      0,
      -0,
      false,
      [],
      {},
      Object.assign(Object.create(null), { a: 1 }),
      runInNewContext('({ a: [1, { b: 2 }] })'),
    ]) {
      expect(roundTrip(value)).toEqual(JSON.parse(JSON.stringify(value)))
    }
  })

  it('what cannot be kept is refused with its path', () => {
    class Account {
      balance = 1
    }
    const refused: [unknown, RegExp][] = [
      [undefined, /^input is undefined: give a value, or null/],
      [{ a: { b: undefined } }, /^input\.a\.b is undefined/],
      [[1, undefined], /^input\[1\] is undefined/],
      // biome-ignore lint/suspicious/noSparseArray: a hole is the point
      [[1, , 3], /^input\[1\] is undefined/],
      [Number.NaN, /^input is NaN/],
      [{ n: [Number.POSITIVE_INFINITY] }, /^input\.n\[0\] is Infinity/],
      [-1 / 0, /^input is -Infinity/],
      [10n, /^input is a BigInt/],
      [Symbol('s'), /^input is a symbol/],
      [{ run: () => 1 }, /^input\.run is a function/],
      [{ when: new Date(0) }, /^input\.when is a Date, not a plain object: send date\.toISOString\(\)/],
      [new Map([[1, 2]]), /^input is a Map.*Object\.fromEntries/],
      [{ s: new Set() }, /^input\.s is a Set/],
      [new Account(), /^input is a Account/],
      [new Error('x'), /^input is a Error/],
      [/x/, /^input is a RegExp/],
      [{ bytes: new Uint8Array(2) }, /^input\.bytes is a Uint8Array/],
      [Promise.resolve(1), /^input is a Promise/],
      [new (class {})(), /^input is a class instance/],
      [{ [Symbol('hidden')]: 1 }, /^input has a symbol as a key/],
    ]
    for (const [value, message] of refused)
      expect(() => encode(value)).toThrow(
        expect.objectContaining({ code: 'INVALID_TASK', message: expect.stringMatching(message) }),
      )
  })

  it('cycles are refused, long or short; the same value twice is none', () => {
    const short: unknown[] = []
    short.push(short)
    const long: Record<string, unknown> = { a: { b: [{}] } }
    ;((long['a'] as { b: Record<string, unknown>[] }).b[0] as Record<string, unknown>)['c'] = long
    for (const cycle of [short, long]) expect(() => encode(cycle)).toThrow(/contains itself|nested deeper/)
    const shared = { x: 1 }
    expect(roundTrip([shared, shared, { shared }])).toEqual([{ x: 1 }, { x: 1 }, { shared: { x: 1 } }])
  })

  it('256 levels are kept, 257 are not', () => {
    expect(roundTrip(nested(256))).toEqual(nested(256))
    expect(() => encode(nested(257))).toThrow(/nested deeper than 256/)
    expect(() => encode(nested(100_000))).toThrow(/nested deeper than 256/)
  })

  it('a getter or a proxy that throws is an error with a name, not a crash', () => {
    const trap = {
      get inner(): never {
        throw new Error('do not touch')
      },
    }
    expect(() => encode(trap)).toThrow(/input cannot be read: do not touch/)
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(() => encode(proxy)).toThrow(expect.objectContaining({ code: 'INVALID_TASK' }))
    const ownKeys = new Proxy(
      {},
      {
        ownKeys: () => {
          throw 'a text'
        },
      },
    )
    expect(() => encode(ownKeys)).toThrow(/input cannot be read: it threw/)
  })

  it('a toJSON of the value’s own is refused', () => {
    const sly = { a: 1, toJSON: () => ({ b: 2 }) }
    expect(() => encode(sly)).toThrow(/^input\.toJSON is a function/)
    const hidden = Object.defineProperty({ a: 1 }, 'toJSON', { value: () => undefined, enumerable: false })
    expect(() => encode(hidden)).toThrow(expect.objectContaining({ code: 'INVALID_TASK' }))
  })

  it('keys named __proto__ or constructor are data like any other', () => {
    const value = JSON.parse('{"__proto__":{"admin":true},"constructor":1,"toString":2}')
    const back = roundTrip(value) as Record<string, unknown>
    expect(Object.keys(back)).toEqual(['__proto__', 'constructor', 'toString'])
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined()
    expect(canonicalJson(value)).toBe('{"__proto__":{"admin":true},"constructor":1,"toString":2}')
  })

  it('over the limit is refused, in bytes, exactly', () => {
    expect(encode('x'.repeat(98), 100).text).toHaveLength(100)
    expect(() => encode('x'.repeat(99), 100)).toThrow(
      expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE', details: { field: 'input', bytes: 101, limit: 100 } }),
    )
    expect(encode('é'.repeat(49), 100).text).toHaveLength(51)
    expect(() => encode('é'.repeat(50), 100)).toThrow(/102 bytes/)
    expect(encode(new Uint8Array(100), 100).encoding).toBe('base64')
    for (const size of [101, 102, 103])
      expect(() => encode(new Uint8Array(size), 100)).toThrow(new RegExp(`${size} bytes`))
  })
})

describe('canonical JSON', () => {
  it('is the same for the same value, whatever the order of keys', () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, inner]) => [key, shuffled(inner)]),
      )
    }
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value))
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('tells different values apart', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const same = canonicalJson(a) === canonicalJson(b)
        if (same) expect(JSON.parse(JSON.stringify(a))).toEqual(JSON.parse(JSON.stringify(b)))
      }),
    )
  })
})

describe('an idempotency key’s life', () => {
  const key = (exact: boolean): KeyRecord => ({ key: 'k', taskId: 'id', hash: 'h', expiresAt: 1_000, exact })

  it('at least until its time; as long as its task, unless it is exact', () => {
    expect([999, 1_000].map((now) => keyIsLive(key(false), false, now))).toEqual([true, false])
    expect([999, 1_000, 1e12].map((now) => keyIsLive(key(false), true, now))).toEqual([true, true, true])
    expect([999, 1_000].map((now) => keyIsLive(key(true), true, now))).toEqual([true, false])
  })

  it('its subject is type and canonical input; bytes and their text are different', () => {
    const json = (value: unknown) => encode(value)
    expect(keySubject('t', json({ a: 1, b: 2 }))).toBe(keySubject('t', json({ b: 2, a: 1 })))
    expect(keySubject('t', json('AA=='))).not.toBe(keySubject('t', encode(new Uint8Array([0]))))
    expect(keySubject('t', json(1))).not.toBe(keySubject('u', json(1)))
  })
})

describe('clean text', () => {
  it('is always well-formed and without NUL', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const clean = cleanText(text)
        expect(clean.isWellFormed()).toBe(true)
        expect(clean).not.toContain('\0')
      }),
    )
    expect(cleanText('a\uD800b\0c')).toBe('a\uFFFDb\uFFFDc')
  })
})
