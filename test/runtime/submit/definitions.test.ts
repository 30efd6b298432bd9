import * as v from 'valibot'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { type Client, defineTask, type Handler, type Task, type TaskDefinition } from '../../../src/index.ts'
import { begin, refuses, shown } from '../setup.ts'

const reminder = defineTask('reminder', {
  input: z.object({ userId: z.string().min(1), copies: z.number().default(1) }),
  output: z.object({ sent: z.number() }),
  timeout: '30s',
  maxRetries: 1,
})

const resize = defineTask('resize', {
  input: v.object({ width: v.pipe(v.string(), v.transform(Number)) }),
})

describe('a definition with a schema', () => {
  it('zod: submit checks, the worker parses again, defaults and all', async () => {
    const { client, passing } = await begin()
    const seen: unknown[] = []
    client
      .worker()
      .handle(reminder, (input) => {
        seen.push(input)
        return { sent: input.copies }
      })
      .start()
    const task = await client.submit(reminder, { userId: '7' })
    expect(task.input, 'stored as it was given').toEqual({ userId: '7' })
    expect(await passing(client.wait(task))).toEqual({ sent: 1 })
    expect(seen).toEqual([{ userId: '7', copies: 1 }])
    await refuses('INVALID_TASK', /^input\.userId: /)(client.submit(reminder, { userId: '' }))
    expect((await client.count()).count).toBe(1)
  })

  it('that is no Standard Schema, as those of an old zod, is refused where it is defined', () => {
    for (const options of [{ input: { parse: () => 1 } }, { output: 5 }])
      expect(() => defineTask('work', options as never)).toThrow(/(input|output) is not a Standard Schema/)
  })

  it('valibot: what the handler gets is what the schema makes of it', async () => {
    const { client, passing } = await begin()
    client
      .worker()
      .handle(resize, ({ width }) => width * 2)
      .start()
    expect(await passing(client.wait(await client.submit(resize, { width: '21' })))).toBe(42)
    await refuses('INVALID_TASK', /^input\.width: /)(client.submit(resize, { width: 3 as never }))
  })

  it('an output that its schema refuses is kept, with the complaint beside it', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle(reminder, () => ({ sent: 'many' }) as never)
      .start()
    const { id } = await client.submit(reminder, { userId: '7' })
    await clock.advance(1_000)
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({ status: 'completed', attempts: 1, output: { sent: 'many' } })
    expect(task.outputError).toMatch(/^output\.sent: /)
  })

  it('an asynchronous schema is waited for, and cannot join a transaction', async () => {
    const { client, passing } = await begin()
    const slow = defineTask('slow', { input: z.string().refine(async (text) => text !== 'bad', 'is bad') })
    client
      .worker()
      .handle(slow, (input) => input.length)
      .start()
    expect(await passing(client.wait(await client.submit(slow, 'four')))).toBe(4)
    await refuses('INVALID_TASK', /is bad/)(client.submit(slow, 'bad'))
    await refuses('INVALID_OPTION', /asynchronously/)(client.submit(slow, 'x', { tx: {} as never }))
    expect(await client.submitMany([{ type: slow, input: 'bad' }])).toMatchObject([
      { ok: false, error: { code: 'INVALID_TASK' } },
    ])
  })

  it('its defaults give way to what the call says, also by another name', async () => {
    const { client, clock } = await begin()
    const timed = defineTask('timed', { ttl: '1h', delay: '5m', maxRetries: 9, queue: 'q', priority: 3 })
    const now = clock.wall()
    expect(shown(await client.submit(timed, {}))).toMatchObject({
      expiresAt: now + 3_600_000,
      availableAt: now + 300_000,
      maxRetries: 9,
      queue: 'q',
      priority: 3,
    })
    const other = await client.submit(
      timed,
      {},
      { expiresAt: now + 1_000_000, at: now + 1_000, maxAttempts: 2, queue: 'r' },
    )
    expect(shown(other)).toMatchObject({
      expiresAt: now + 1_000_000,
      availableAt: now + 1_000,
      maxRetries: 1,
      queue: 'r',
      priority: 3,
    })
    expect((await client.submit(reminder, { userId: '1' })).timeout).toBe(30_000)
  })

  it('a type has one handler, and a name that can be stored', async () => {
    const { client } = await begin()
    const worker = client.worker().handle('a', () => {})
    expect(() => worker.handle('a', () => {})).toThrow(/has a handler already/)
    expect(() => worker.handle('b', 'no function' as never)).toThrow(/not a function, nor \{ module, isolate \}/)
    expect(() => worker.handle('no good', () => {})).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    expect(() => defineTask('no good')).toThrow(expect.objectContaining({ code: 'INVALID_TASK' }))
  })
})

describe('types', () => {
  it('of input, parsed input and output follow the schemas', () => {
    expectTypeOf(reminder).toExtend<
      TaskDefinition<
        { userId: string; copies?: number | undefined },
        { userId: string; copies: number },
        { sent: number }
      >
    >()
    expectTypeOf(resize).toExtend<TaskDefinition<{ width: string }, { width: number }>>()
    expectTypeOf(defineTask('plain')).toEqualTypeOf<TaskDefinition<unknown, unknown, unknown>>()
  })

  it('submit takes the input type and gives a task of it; wait gives the output type', () => {
    const typed = (client: Client) => {
      const submitted = () => client.submit(reminder, { userId: '1' })
      expectTypeOf(submitted).returns.resolves.toEqualTypeOf<
        Task<{ userId: string; copies?: number | undefined }, { sent: number }>
      >()
      const waited = async () => client.wait(await submitted())
      expectTypeOf(waited).returns.resolves.toEqualTypeOf<{ sent: number }>()
      const plain = () => client.submit('plain', { anything: true })
      expectTypeOf(plain).returns.resolves.toEqualTypeOf<Task>()
      // @ts-expect-error: the schema wants a text
      void (() => client.submit(reminder, { userId: 1 }))
      // @ts-expect-error: a duration needs a unit
      void (() => client.submit('plain', 1, { delay: 5 }))
      // @ts-expect-error: not an option
      void (() => client.submit('plain', 1, { retries: 5 }))
    }
    expectTypeOf(typed).parameter(0).toEqualTypeOf<Client>()
  })

  it('a handler gets what the schema parsed and must return what the output schema says', () => {
    const typed = (client: Client) => {
      client.worker().handle(reminder, (input, ctx) => {
        expectTypeOf(input).toEqualTypeOf<{ userId: string; copies: number }>()
        expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>()
        return { sent: 1 }
      })
      client.worker().handle(reminder, (_, ctx) => ctx.reschedule('1s'))
      // @ts-expect-error: not the output
      client.worker().handle(reminder, () => ({ sent: 'x' }))
    }
    expectTypeOf(typed).parameter(0).toEqualTypeOf<Client>()
    expectTypeOf<Handler>().parameter(0).toEqualTypeOf<unknown>()
  })
})
