/** One corpus of inputs on every store: accepted alike with the same text back, or refused alike with the same code. */
import { describe, expect, test } from 'vitest'
import { connect, isHoldfastError, silentLogger } from '../src/index.ts'
import { stores } from './stores.ts'

const deep = (depth: number): unknown => {
  let value: unknown = []
  for (let i = 1; i < depth; i++) value = [value]
  return value
}

class Point {
  x = 1
}

const cyclic: Record<string, unknown> = {}
cyclic['self'] = cyclic

/** What comes back, as text; for all others, what JSON says of them. */
const accepted: Readonly<Record<string, unknown>> = {
  null: null,
  'the empty text': '',
  'the empty object': {},
  'the empty list': [],
  'minus zero, which JSON writes as zero': -0,
  'the largest number': Number.MAX_VALUE,
  'the smallest number': 5e-324,
  'the last safe integer and the next': [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER + 1],
  tenths: 0.1 + 0.2,
  'a NUL in a value': 'a\0b',
  'a NUL in a key': { 'a\0b': 1 },
  'every control character': String.fromCharCode(...Array.from({ length: 32 }, (_, i) => i), 127),
  'lone surrogates in a value': ['\ud800', '\udfff', 'a\ud83d', '\ude00b'],
  'a lone surrogate in a key': { '\ud800': '\udfff' },
  'the line separators of JavaScript': '\u2028\u2029',
  'a byte order mark and things without width': '\ufeff\u200b\u200d\u00ad',
  emoji: '🪢👩‍👩‍👧‍👦🏴‍☠️',
  'text from right to left': '\u202eمرحبا\u202c',
  'the last code point and noncharacters': '\u{10ffff}\ufffe\uffff',
  'keys in an order of their own': JSON.parse('{"b":1,"a":2,"10":3,"9":4,"":5}'),
  'a key named __proto__': JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":2}'),
  'quotes, backslashes and statements': `'"\\ \\u0000 \\x00 '; drop table task; -- $1 ? :a %s \${x} \\N {} `,
  'what looks like a PostgreSQL array': ['{1,2}', 'NULL', '{"a":NULL}', '\\x41', "E'\\n'"],
  'what looks like JSON': '{"a":1}',
  'an object without a prototype': Object.assign(Object.create(null), { a: 1 }),
  'the deepest nesting': deep(256),
  'a megabyte of text': 'x'.repeat(1_048_574),
  'a megabyte of emoji': '🪢'.repeat(262_143),
  'ten thousand keys': Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i])),
}

const refused: Readonly<Record<string, unknown>> = {
  '1e400, which is Infinity here': JSON.parse('1e400'),
  'NaN inside': { a: [Number.NaN] },
  undefined: undefined,
  'undefined inside': { a: undefined },
  'a BigInt': 1n,
  'a function': () => {},
  'a symbol': Symbol('a'),
  'a date': new Date(0),
  'a map': new Map(),
  'an instance': new Point(),
  'a cycle': cyclic,
  'nesting beyond the limit': deep(257),
  'a getter that throws': Object.defineProperty({}, 'a', {
    enumerable: true,
    get() {
      throw new Error('no')
    },
  }),
  'more than a megabyte': 'x'.repeat(1_048_575),
}

/** Everything else that is text and given by the caller. */
const words: Readonly<Record<string, readonly [options: object, code: string | null]>> = {
  'a key with a NUL': [{ idempotencyKey: 'a\0b' }, 'INVALID_OPTION'],
  'a key with a lone surrogate': [{ idempotencyKey: '\ud800' }, 'INVALID_OPTION'],
  'a key of emoji': [{ idempotencyKey: '🪢'.repeat(100) }, null],
  'a key of SQL': [{ idempotencyKey: `'; drop table key; --\\` }, null],
  'a tag with a NUL': [{ tags: { a: 'b\0' } }, 'INVALID_OPTION'],
  'a tag with a lone surrogate': [{ tags: { '\ud800': 'b' } }, 'INVALID_OPTION'],
  'tags of emoji, quotes and backslashes': [{ tags: { '🪢"': `'\\"{}` } }, null],
  'a queue with a quote': [{ queue: "a'b" }, 'INVALID_OPTION'],
  'a queue named __proto__': [{ queue: '__proto__' }, null],
}

for (const { name, open } of stores) {
  if (typeof open === 'string') {
    test(`${name}, payloads`, (context) => context.skip(`${name} could not be started: ${open}`))
    continue
  }
  describe(`${name}, payloads`, () => {
    const withClient = async (work: (client: Awaited<ReturnType<typeof connect>>) => Promise<void>): Promise<void> => {
      await using client = await connect(await open(), { logger: silentLogger })
      await work(client)
    }
    const outcome = (call: Promise<unknown>): Promise<string | null> =>
      call.then(
        () => null,
        (error: unknown) => (isHoldfastError(error) ? error.code : `not ours: ${String(error)}`),
      )

    test('what is accepted comes back as the same text, as input and as output', () =>
      withClient(async (client) => {
        const ids = new Map<string, string>()
        for (const [what, input] of Object.entries(accepted)) ids.set(what, (await client.submit('echo', input)).id)
        const seen = new Map<string, string>()
        const worker = client.worker().handle('echo', (given, { task }) => {
          seen.set(task.id, JSON.stringify(given))
          return given
        })
        await worker.drain()
        for (const [what, id] of ids) {
          const after = await client.get(id)
          const text = JSON.stringify(accepted[what])
          expect(seen.get(id) === text, `${what}: the handler's input`).toBe(true)
          expect(JSON.stringify(after.input) === text, `${what}: the stored input`).toBe(true)
          expect(JSON.stringify(after.output) === text, `${what}: the stored output`).toBe(true)
        }
      }))

    test('what is refused is refused with the same code, and nothing is stored', () =>
      withClient(async (client) => {
        const codes: Record<string, string | null> = {}
        for (const [what, input] of Object.entries(refused)) codes[what] = await outcome(client.submit('echo', input))
        const expected = Object.keys(refused).map((what) => [
          what,
          what === 'more than a megabyte' ? 'PAYLOAD_TOO_LARGE' : 'INVALID_TASK',
        ])
        expect(codes).toEqual(Object.fromEntries(expected))
        expect((await client.count()).count).toBe(0)
      }))

    test('keys, tags and queues are accepted or refused alike, and found again', () =>
      withClient(async (client) => {
        for (const [what, [options, code]] of Object.entries(words)) {
          expect([what, await outcome(client.submit('echo', 1, options))]).toEqual([what, code])
          if (code !== null) continue
          const { idempotencyKey, tags } = options as { idempotencyKey?: string; tags?: Record<string, string> }
          if (idempotencyKey !== undefined)
            expect((await client.getByIdempotencyKey(idempotencyKey)).idempotencyKey).toBe(idempotencyKey)
          for (const [tag, value] of Object.entries(tags ?? {}))
            expect((await client.list({ tag: { name: tag, value } })).tasks.map((task) => task.tags)).toEqual([tags])
        }
      }))

    test("an error's text is kept, made well-formed where it must be", () =>
      withClient(async (client) => {
        const { id } = await client.submit('throw', null, { maxRetries: 0 })
        const worker = client.worker().handle('throw', () => {
          throw new Error(`a\0b \ud800 🪢 ' " \\ \u2028`)
        })
        await worker.drain()
        expect((await client.get(id)).lastError?.message).toBe(`a\ufffdb \ufffd 🪢 ' " \\ \u2028`)
      }))
  })
}
