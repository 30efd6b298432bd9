import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/index.ts'
import { begin, gate, refuses, shown } from '../setup.ts'

/** Fails for good at the first run, so that the error can be read at once. */
const thrown = async (throwIt: () => unknown) => {
  const { client, clock } = await begin()
  client
    .worker()
    .handle('bad', throwIt)
    .handle('good', () => 'fine')
    .start()
  const bad = await client.submit('bad', {}, { maxRetries: 0 })
  const good = await client.submit('good', {})
  await clock.advance(1_000)
  expect((await client.get(good.id)).output, 'others are not held up').toBe('fine')
  const task = await client.get(bad.id)
  expect(task.status).toBe('failed')
  const error = task.lastError!
  expect(Buffer.byteLength(JSON.stringify(error))).toBeLessThanOrEqual(8_192 * 2)
  expect(Buffer.byteLength(error.name + error.message + (error.stack ?? ''))).toBeLessThanOrEqual(8_192)
  return error
}

const throwing = (value: unknown) => () => {
  throw value
}

describe('whatever a handler throws becomes text on the task', () => {
  it('null, undefined, a string, a number, a symbol, a function', async () => {
    expect((await thrown(throwing(null))).message).toBe('null')
    expect((await thrown(throwing(undefined))).message).toBe('undefined')
    expect((await thrown(throwing('just words'))).message).toBe('just words')
    expect((await thrown(throwing(42))).message).toBe('42')
    expect((await thrown(throwing(Symbol('s')))).message).toBe('Symbol(s)')
    expect((await thrown(throwing(() => {}))).message).toContain('=>')
  })

  it('a frozen error, an error without a message, one of another name', async () => {
    expect(await thrown(throwing(Object.freeze(new Error('cold'))))).toMatchObject({ name: 'Error', message: 'cold' })
    expect((await thrown(throwing(new Error('')))).name).toBe('Error')
    expect(await thrown(throwing(new TypeError('not a function')))).toMatchObject({ name: 'TypeError' })
  })

  it('an error whose getters throw', async () => {
    const nasty = new Error('x')
    for (const field of ['name', 'message', 'stack']) {
      Object.defineProperty(nasty, field, {
        get() {
          throw new Error('gotcha')
        },
      })
    }
    expect((await thrown(throwing(nasty))).name).toBe('Error')
  })

  it('a cyclic object, an object whose toJSON throws, a plain object', async () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    expect((await thrown(throwing(cycle))).message).toBe('an error that cannot be printed')
    expect((await thrown(throwing({ code: 7 }))).message).toBe('{"code":7}')
    const refusing = {
      toJSON() {
        throw new Error('no')
      },
    }
    expect((await thrown(throwing(refusing))).message).toBe('an error that cannot be printed')
  })

  it('a revoked proxy, which cannot even be asked what it is', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect((await thrown(throwing(proxy))).message).toBe('an error that cannot be printed')
    expect((await thrown(async () => Promise.reject(proxy))).message).toBe('an error that cannot be printed')
  })

  it('5 MiB of message, cut to what is kept, well-formed and without NUL', async () => {
    const error = await thrown(throwing(new Error('🎈'.repeat(1_310_720))))
    expect(error.message.length).toBeGreaterThan(1_000)
    expect(error.message.isWellFormed()).toBe(true)
    expect((await thrown(throwing(new Error('a\0b\uD800c')))).message).toBe('a\uFFFDb\uFFFDc')
  })
})

describe('an output never fails its task, because its effect has happened', () => {
  const returned = async (output: unknown, maxPayload?: number) => {
    const warnings: string[] = []
    const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) }
    const { client, clock, passing } = await begin({ logger, ...(maxPayload === undefined ? null : { maxPayload }) })
    client
      .worker()
      .handle('bad', () => output)
      .start()
    const { id } = await client.submit('bad', {})
    await client.submit('bad', {})
    await clock.advance(1_000)
    return { task: await client.get(id), warnings, wait: () => passing(client.wait(id)) }
  }

  it('it is taken as JSON.stringify takes it, with one warning a type that names the path', async () => {
    const at = new Date('2026-01-28T17:00:00Z')
    const cases: [output: unknown, kept: unknown, warning: RegExp][] = [
      [{ at }, { at: at.toISOString() }, /output\.at is a Date/],
      [{ a: undefined, b: 1 }, { b: 1 }, /output\.a is undefined/],
      [[1, [Number.NaN]], [1, [null]], /output\[1\]\[0\] is NaN/],
      [new Map(), {}, /output is a Map/],
    ]
    for (const [output, kept, warning] of cases) {
      const { task, warnings } = await returned(output)
      expect(shown(task)).toMatchObject({ status: 'completed', attempts: 1, output: kept, outputError: null })
      expect(warnings).toEqual([expect.stringMatching(warning)])
    }
  })

  it('what cannot be text at all is left out, and the reason stands in the record', async () => {
    const cycle: unknown[] = []
    cycle.push(cycle)
    const trap = new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new Error('do not look')
        },
        ownKeys() {
          throw new Error('do not look')
        },
      },
    )
    let deep: unknown = 1
    for (let i = 0; i < 300; i++) deep = [deep]
    const cases: [output: unknown, reason: RegExp][] = [
      [1n, /output is a BigInt/],
      [() => {}, /output is a function/],
      [cycle, /contains itself/],
      [deep, /nested deeper than 256/],
      [trap, /do not look/],
    ]
    for (const [output, reason] of cases) {
      const { task, warnings, wait } = await returned(output)
      expect(shown(task)).toMatchObject({ status: 'completed', attempts: 1, output: null, lastError: null })
      expect(task.outputError).toMatch(reason)
      expect(JSON.parse(JSON.stringify(task)).outputError).toBe(task.outputError)
      expect(warnings).toHaveLength(2)
      await refuses('OUTPUT_INVALID', reason)(wait())
    }
    const large = await returned('x'.repeat(2_000), 1_000)
    expect(shown(large.task)).toMatchObject({
      status: 'completed',
      attempts: 1,
      outputError: 'output is 2002 bytes; the limit is 1000',
    })
  })
})

describe('a handler that misbehaves', () => {
  it('settling twice ends its task once', async () => {
    const { client, clock } = await begin()
    const twice = {
      // biome-ignore lint/suspicious/noThenProperty: a thenable that breaks the rules is the point
      then(resolve: (value: unknown) => void, reject: (error: unknown) => void) {
        resolve('first')
        resolve('second')
        reject(new Error('third'))
      },
    }
    client
      .worker({ concurrency: 1 })
      .handle('bad', () => twice)
      .handle('good', () => 'fine')
      .start()
    const { id } = await client.submit('bad', {})
    const good = await client.submit('good', {})
    await clock.advance(1_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: 'first', revision: 3 })
    expect((await client.get(good.id)).output).toBe('fine')
  })

  it('one that fails every time ends among the dead, and the others are done long before', async () => {
    const { client, clock } = await begin()
    client
      .worker({ concurrency: 2 })
      .handle('poison', throwing(new Error('always')))
      .handle('good', () => 'fine')
      .start()
    const poison = await client.submit('poison', {})
    await client.submitMany(Array.from({ length: 50 }, () => ({ type: 'good', input: 1 })))
    await clock.settle()
    expect((await client.count({ status: 'completed' })).count).toBe(50)
    await clock.advance(120_000)
    expect((await client.list({ status: 'dead' })).tasks.map(({ id }) => id)).toEqual([poison.id])
  })

  it('[L01] one that hangs in every run ends among the dead, and does not stop the others', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    let runs = 0
    client
      .worker({ concurrency: 4, stuckAfter: '1s' })
      .handle('poison', () => {
        runs++
        return new Promise(() => {})
      })
      .handle('good', () => 'fine')
      // Takes the fourth slot: the three runs of the poison would take the others for ever.
      .handle('long', () => new Promise(() => {}))
      .start()
    await client.submit('long', {}, { timeout: null, priority: 10 })
    const poison = await client.submit('poison', {}, { timeout: '10s', maxRetries: 2, priority: 10 })
    for (let round = 0; round < 5; round++) {
      await client.submitMany(Array.from({ length: 50 }, () => ({ type: 'good', input: 1 })))
      await clock.advance(12_000)
      expect((await client.count({ status: 'completed' })).count).toBe(50 * (round + 1))
    }
    const { tasks } = await client.list({ status: 'dlq' })
    expect(tasks.map(({ id, attempts, retryCount }) => [id, attempts, retryCount])).toEqual([[poison.id, 3, 2]])
    expect(tasks[0]!.lastError?.message).toBe('timed out after 10s')
    expect(runs).toBe(3)
  })

  it('an input that the schema of the worker refuses fails for good, without the handler', async () => {
    const { z } = await import('zod')
    const { defineTask } = await import('../../../src/index.ts')
    const { client, clock } = await begin()
    let runs = 0
    client
      .worker()
      .handle(defineTask('strict', { input: z.object({ n: z.number() }) }), () => void runs++)
      .start()
    const { id } = await client.submit('strict', { n: 'a string' })
    await clock.advance(1_000)
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({ status: 'failed', attempts: 1, lastError: { name: 'PermanentError' } })
    expect(task.lastError?.message).toMatch(/input\.n/)
    expect(runs).toBe(0)
  })
})

describe('one bad value never fails its batch', () => {
  it('a store that refuses a whole insert because of one task is asked one by one', async () => {
    const { HoldfastError } = await import('../../../src/index.ts')
    const { client } = await begin({
      through: (store) =>
        new Proxy(store, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name, target)
            if (name !== 'insert') return typeof value === 'function' ? value.bind(target) : value
            return async (
              insertions: Parameters<typeof target.insert>[0],
              options: Parameters<typeof target.insert>[1],
            ) => {
              if (insertions.some(({ task }) => task.type === 'indigestible'))
                throw new HoldfastError('STORE_FULL', 'too big for this store')
              return target.insert(insertions, options)
            }
          },
        }),
    })
    const results = await client.submitMany([
      { type: 'good', input: 1 },
      { type: 'indigestible', input: 2 },
      { type: 'good', input: 3 },
    ])
    expect(results.map((result) => (result.ok ? 'ok' : result.error.code))).toEqual(['ok', 'STORE_FULL', 'ok'])
    const singles = await Promise.allSettled([
      client.submit('good', 4),
      client.submit('indigestible', 5),
      client.submit('good', 6),
    ])
    expect(singles.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await client.count()).count).toBe(4)
  })

  it('endings that a store refuses together because of one are written one by one', async () => {
    const { HoldfastError } = await import('../../../src/index.ts')
    const { client, clock } = await begin({
      through: (store) =>
        new Proxy(store, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name, target)
            if (name !== 'commit') return typeof value === 'function' ? value.bind(target) : value
            return async (changes: Parameters<typeof target.commit>[0]) => {
              if (changes.some(({ set }) => set.output === '"indigestible"'))
                throw new HoldfastError('PAYLOAD_TOO_LARGE', 'too big for this store')
              return target.commit(changes)
            }
          },
        }),
    })
    const together = gate()
    client
      .worker({ concurrency: 5 })
      .handle('work', async (input) => {
        await together.opened
        return input
      })
      .start()
    const good = await Promise.all([1, 2, 3].map((n) => client.submit('work', n)))
    const bad = await client.submit('work', 'indigestible')
    await clock.settle()
    together.open()
    await clock.settle()
    expect(await Promise.all(good.map(async ({ id }) => (await client.get(id)).output))).toEqual([1, 2, 3])
    expect((await client.get(bad.id)).status).toBe('running')
  })
})
