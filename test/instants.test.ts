/** Times that a handler asks for, on every store: the end of the run is written, and the task can be read afterwards. */
import { describe, expect, test } from 'vitest'
import { connect, RescheduleError, silentLogger } from '../src/index.ts'
import { stores } from './stores.ts'

/** An error of another copy of the package, or one that only looks like it. */
const lookalike = (fields: object): Error => Object.assign(new Error('later'), { name: 'RescheduleError' }, fields)

const throwing = (name: string): Error =>
  Object.defineProperty(lookalike({}), name, {
    get() {
      throw new Error('do not look')
    },
  })

/** A wait of a century is the longest; what is no time fails the attempt with a text that names it. */
const wishes: Readonly<Record<string, readonly [wish: () => unknown, end: 'pending' | RegExp]>> = {
  'an instant after the year 9999': [() => new RescheduleError(0, { at: 1e16 }), /^at is not an instant between/],
  'an instant that is not a number': [() => new RescheduleError(0, { at: Number.NaN }), /^at is not an instant/],
  'an instant a century and more away': [() => new RescheduleError(0, { at: Date.UTC(9999, 11, 31) }), 'pending'],
  'a delay that was overwritten': [() => Object.assign(new RescheduleError(0), { delay: 1e300 }), 'pending'],
  'an instant that was overwritten': [() => Object.assign(new RescheduleError(0), { at: 1e300 }), 'pending'],
  'a fraction of a millisecond': [() => Object.assign(new RescheduleError(0), { delay: 60_000.5 }), 'pending'],
  'an extension without end': [() => lookalike({ delay: 60_000, extendExpiration: 1e300 }), 'pending'],
  'a delay alone': [() => lookalike({ delay: 60_000 }), 'pending'],
  'an instant alone': [() => lookalike({ at: Date.now() + 60_000 }), 'pending'],
  'a delay that is not a number': [() => lookalike({ delay: Number.NaN }), /^delay of the RescheduleError is NaN/],
  'an endless delay': [() => lookalike({ delay: Number.POSITIVE_INFINITY }), /^delay .* is Infinity/],
  'an instant of text': [() => lookalike({ delay: 0, at: '2030' }), /^at .* is a string/],
  'an extension of text': [() => lookalike({ delay: 0, extendExpiration: '1m' }), /^extendExpiration .* is a string/],
  'a getter of the delay that throws': [() => throwing('delay'), /^later$/],
  'a getter of the instant that throws': [() => Object.assign(throwing('at'), { delay: 60_000 }), 'pending'],
  'no time at all': [() => lookalike({}), /^later$/],
}

for (const { name, open } of stores) {
  if (typeof open === 'string') {
    test(`${name}, instants`, (context) => context.skip(`${name} could not be started: ${open}`))
    continue
  }
  describe(`${name}, instants`, () => {
    test('whatever time a handler asks for, thrown or returned, the end of its run is written and can be read', async () => {
      await using client = await connect(await open(), { logger: silentLogger })
      const submitted = new Map<string, readonly [what: string, end: 'pending' | RegExp]>()
      for (const how of ['throw', 'return'])
        for (const [what, [, end]] of Object.entries(wishes)) {
          const { id } = await client.submit(how, what, { maxRetries: 0, ttl: '1d' })
          // A returned error that asks for no time is an output like any other.
          if (how === 'throw' || String(end) !== '/^later$/') submitted.set(id, [`${how} ${what}`, end])
        }
      const wish = (what: unknown): unknown => wishes[what as string]![0]()
      const worker = client
        .worker()
        .handle('throw', (what) => {
          throw wish(what)
        })
        .handle('return', (what) => wish(what) as string)
      await worker.drain()
      const { tasks } = await client.list({ limit: 1_000 })
      expect(tasks).toHaveLength(Object.keys(wishes).length * 2)
      const century = Date.now() + 36_525 * 86_400_000
      for (const [id, [what, end]] of submitted) {
        const task = await client.get(id)
        expect([what, task.status]).toEqual([what, end === 'pending' ? 'pending' : 'failed'])
        if (end !== 'pending') expect(task.lastError?.message, what).toMatch(end)
        expect(Number.isInteger(task.availableAt) && task.availableAt <= century, what).toBe(true)
        expect(JSON.parse(JSON.stringify(task)).expiresAt, what).toMatch(/^\d{4}-/)
      }
      for await (const line of client.export()) expect(line).toBeDefined()
      for (const [id, [what, end]] of submitted)
        if (end === 'pending') expect([what, (await client.cancel(id)).status]).toEqual([what, 'cancelled'])
    })
  })
}
