/** handleMany: one call and one slot for many tasks, each with its own lease and outcome. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type BatchContext,
  type Client,
  defineTask,
  type Logger,
  PermanentError,
  RescheduleError,
  RetryableError,
  type SubmitOptions,
  silentLogger,
  type Task,
} from '../../../src/index.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { begin, gate, movesOf, shown } from '../setup.ts'

const insert = defineTask<number, string>('insert')

const submitAll = async (client: Client, inputs: readonly number[], options: SubmitOptions = {}) => {
  const results = await client.submitMany(inputs.map((input) => ({ type: insert, input, ...options })))
  return results.map((result) => {
    if (!result.ok) throw result.error
    return result.task
  })
}

const inputsOf = (tasks: readonly Task<number>[]): number[] => tasks.map(({ input }) => input)
const read = (client: Client, tasks: readonly { readonly id: string }[]) =>
  Promise.all(tasks.map(({ id }) => client.get(id)))
const statuses = async (client: Client, tasks: readonly { readonly id: string }[]) =>
  (await read(client, tasks)).map(({ status }) => status)
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe('a batch', () => {
  it('has up to size tasks, in the order of the queue, and each gets the result in its place', async () => {
    const { client } = await begin()
    const calls: number[][] = []
    const tasks = await submitAll(client, upTo(25))
    await client
      .worker({ concurrency: 1 })
      .handleMany(insert, { size: 10 }, (batch) => {
        calls.push(inputsOf(batch))
        return batch.map(({ input }) => `row ${input}`)
      })
      .drain()
    expect(calls).toEqual([upTo(10), upTo(10).map((n) => n + 10), [20, 21, 22, 23, 24]])
    expect((await read(client, tasks)).map(({ output }) => output)).toEqual(upTo(25).map((n) => `row ${n}`))
    expect(movesOf(await client.get(tasks[0]!.id))).toEqual([
      'submit → pending',
      'claim → running',
      'complete → completed',
    ])
  })

  it('takes one slot: with two slots, two batches run at once and a third waits', async () => {
    const { client, clock } = await begin()
    const end = gate()
    const sizes: number[] = []
    client
      .worker({ concurrency: 2 })
      .handleMany(insert, { size: 5 }, async (batch) => {
        sizes.push(batch.length)
        await end.opened
        return batch.map(() => 'done')
      })
      .start()
    const tasks = await submitAll(client, upTo(15))
    await clock.settle()
    expect(sizes).toEqual([5, 5])
    end.open()
    await clock.advance(1_000)
    expect(sizes).toEqual([5, 5, 5])
    expect(new Set(await statuses(client, tasks))).toEqual(new Set(['completed']))
  })

  it('shares a worker with handlers of single tasks, which get their slots too', async () => {
    const { client } = await begin()
    await submitAll(client, upTo(100))
    for (const n of upTo(30)) await client.submit('single', n)
    const order: string[] = []
    await client
      .worker({ concurrency: 2 })
      .handleMany(insert, { size: 10 }, (batch) => {
        order.push(`batch of ${batch.length}`)
        return batch.map(() => 'x')
      })
      .handle('single', () => void order.push('single'))
      .drain()
    expect(order.filter((what) => what === 'batch of 10')).toHaveLength(10)
    expect(order.filter((what) => what === 'single')).toHaveLength(30)
    expect(order.slice(0, 10), 'neither waits for all of the other').toContain('single')
    expect(order.slice(0, 10)).toContain('batch of 10')
  })

  it('has tasks with inputs as the schema parsed them; one that does not fit fails alone and for good', async () => {
    const { client } = await begin()
    const doubled = defineTask('doubled', {
      input: z
        .number()
        .max(100)
        .transform((n) => n * 2),
    })
    const bad = await client.submit('doubled', 'x')
    const good = [await client.submit(doubled, 1), await client.submit(doubled, 2)]
    const seen: number[][] = []
    await client
      .worker()
      .handleMany(doubled, { size: 10 }, (batch, ctx) => {
        seen.push(inputsOf(batch))
        expect(
          batch.map((task) => ctx.of(task).task.input),
          'as it was submitted',
        ).toEqual([1, 2])
        return batch.map(({ input }) => input)
      })
      .drain()
    expect(seen).toEqual([[2, 4]])
    expect((await read(client, good)).map(({ output }) => output)).toEqual([2, 4])
    expect(shown(await client.get(bad.id))).toMatchObject({ status: 'failed', attempts: 1 })
  })
})

describe('the results of a batch', () => {
  it('a value completes its task, an Error fails it under its own retries', async () => {
    const { client } = await begin({ random: () => 0 })
    const tasks = await submitAll(client, upTo(6), { maxRetries: 1 })
    const runs: number[][] = []
    const results = (batch: readonly Task<number>[]) =>
      batch.map(({ input, attempts }) => {
        if (attempts > 1) return 'second run'
        return [
          'ok',
          new Error('no'),
          new PermanentError('never'),
          new RescheduleError('1h'),
          new RetryableError('later', { delay: '1h' }),
          null as unknown as string,
        ][input]!
      })
    await client
      .worker()
      .handleMany(insert, { size: 10 }, (batch) => {
        runs.push(inputsOf(batch))
        return results(batch)
      })
      .drain()
    expect(runs).toEqual([upTo(6), [1]])
    const after = await read(client, tasks)
    expect(after.map(({ status, output, retryCount }) => [status, output, retryCount])).toEqual([
      ['completed', 'ok', 0],
      ['completed', 'second run', 1],
      ['failed', null, 0],
      ['pending', null, 0],
      ['pending', null, 1],
      ['completed', null, 0],
    ])
    expect([after[3]!.rescheduleCount, after[2]!.lastError?.message]).toEqual([1, 'never'])
  })

  it('of another number than its tasks fail each of them, and the error says so', async () => {
    for (const [results, text] of [
      [['one'], '1 results for 3 tasks'],
      [undefined, 'no array of results for 3 tasks'],
    ] as const) {
      const { client } = await begin()
      const tasks = await submitAll(client, upTo(3), { maxRetries: 0 })
      await client
        .worker()
        .handleMany(insert, { size: 10 }, () => results as readonly string[])
        .drain()
      for (const task of await read(client, tasks)) {
        expect(task.status).toBe('failed')
        expect(task.lastError?.message).toBe(
          `the batch handler of 'insert' returned ${text}: it must return one for each, in their order`,
        )
      }
    }
  })

  it('a throw fails each under its own retries', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const [first] = await submitAll(client, [1], { maxRetries: 0 })
    const [second] = await submitAll(client, [2], { maxRetries: 5 })
    let calls = 0
    await client
      .worker()
      .handleMany(insert, { size: 10 }, (batch) => {
        if (calls++ === 0) throw new Error('the database is away')
        return batch.map(() => 'done')
      })
      .drain()
    await clock.settle()
    expect(await statuses(client, [first!, second!])).toEqual(['failed', 'completed'])
    expect((await client.get(first!.id)).lastError?.message).toBe('the database is away')
  })

  it('are checked by the schema of the output one by one', async () => {
    const { client } = await begin()
    const checked = defineTask('checked', { output: z.number() })
    const tasks = [await client.submit(checked, {}), await client.submit(checked, {})]
    await client
      .worker()
      .handleMany(checked, { size: 2 }, () => [1, 'two' as unknown as number])
      .drain()
    const after = await read(client, tasks)
    expect(after.map(({ status, outputError }) => [status, outputError === null])).toEqual([
      ['completed', true],
      ['completed', false],
    ])
  })
})

describe('one task of a batch', () => {
  const stage = async (options: SubmitOptions = {}) => {
    const bench = await begin()
    const end = gate<(string | Error)[]>()
    let batch: readonly Task<number>[] = []
    let ctx!: BatchContext<number>
    const worker = bench.client
      .worker({ concurrency: 1, stuckAfter: '10s' })
      .handleMany(insert, { size: 3 }, (tasks, context) => {
        if (batch.length > 0) return tasks.map(() => 'again')
        batch = tasks
        ctx = context
        return end.opened
      })
      .start()
    const tasks = await submitAll(bench.client, upTo(3), options)
    await bench.clock.settle()
    return { ...bench, worker, tasks, end, ctx: () => ctx, batch: () => batch }
  }

  it('has its own fence, progress, log and signal in ctx.of', async () => {
    const { client, clock, ctx, batch, end, tasks } = await stage()
    expect(batch().map((task) => ctx().of(task).fence)).toEqual([1, 1, 1])
    ctx().of(batch()[1]!).progress({ done: 5 })
    await clock.advance(2_000)
    expect((await read(client, tasks)).map(({ progress }) => progress)).toEqual([null, { done: 5 }, null])
    expect(() => ctx().of({ id: '01900000-0000-7000-8000-000000000001' })).toThrow(/is not in this batch/)
    end.open(['a', 'b', 'c'])
    await clock.settle()
  })

  it('that was claimed again while it waited for others has the fence of each claim', async () => {
    const { client, clock } = await begin()
    const fences: number[] = []
    client
      .worker({ id: 'w' })
      .handleMany(insert, { size: 2, wait: '2s' }, (tasks, ctx) => {
        fences.push(...tasks.map((task) => ctx.of(task).fence))
        return tasks.map(() => 'done')
      })
      .start()
    const task = await client.submit(insert, 1)
    await clock.settle()
    // Revokes the lease. The worker claims it again before a heartbeat tells about the first.
    await client.retry(task.id)
    await clock.advance(100)
    expect(fences).toEqual([1, 2])
    await clock.advance(1_000)
    expect((await client.get(task.id)).history.map(({ move }) => move)).toEqual([
      'submit',
      'claim',
      'retry',
      'claim',
      'complete',
    ])
  })

  it('that is cancelled aborts its own signal, not the others’, and ends as cancelled when its result is an Error', async () => {
    const { client, clock, ctx, batch, end, tasks } = await stage()
    await client.cancel(tasks[1]!.id)
    await clock.advance(3_000)
    expect(batch().map((task) => ctx().of(task).signal.aborted)).toEqual([false, true, false])
    expect(ctx().of(batch()[1]!).signal.reason.kind).toBe('cancelled')
    expect(ctx().signal.aborted).toBe(false)
    end.open(['a', new Error('stopped'), 'c'])
    await clock.settle()
    expect(await statuses(client, tasks)).toEqual(['completed', 'cancelled', 'completed'])
  })

  it('that is cancelled, and whose batch goes on for longer than stuckAfter, is cancelled; the batch keeps its slot and ends well', async () => {
    const { client, clock, end, tasks } = await stage()
    await client.cancel(tasks[1]!.id)
    await clock.advance(20_000)
    expect(await statuses(client, tasks)).toEqual(['running', 'cancelled', 'running'])
    expect((await client.workers())[0]).toMatchObject({ stuck: { count: 0 }, claiming: true })
    const next = await submitAll(client, [7])
    await clock.advance(5_000)
    expect(await statuses(client, next), 'the only slot is taken').toEqual(['pending'])
    end.open(['a', 'b', 'c'])
    await clock.settle()
    expect(await statuses(client, tasks)).toEqual(['completed', 'cancelled', 'completed'])
  })

  it('whose lease is lost aborts alone; what the batch says of it counts for nothing', async () => {
    const { client, clock, ctx, batch, end, tasks } = await stage()
    // It comes to this worker again, under another lease, and waits for the slot.
    await client.retry(tasks[0]!.id)
    await clock.advance(3_000)
    expect(batch().map((task) => ctx().of(task).signal.aborted)).toEqual([true, false, false])
    expect(ctx().of(batch()[0]!).signal.reason.kind).toBe('lease-lost')
    expect(ctx().signal.aborted).toBe(false)
    end.open(['a', 'b', 'c'])
    await clock.settle()
    await clock.advance(3_000)
    expect((await read(client, tasks)).map(({ status, output, attempts }) => [status, output, attempts > 1])).toEqual([
      ['completed', 'again', true],
      ['completed', 'b', false],
      ['completed', 'c', false],
    ])
  })

  it('when all are cancelled or lost, the signal of the batch aborts too', async () => {
    const { client, clock, ctx, end, tasks } = await stage()
    const { signal } = ctx()
    for (const { id } of tasks) await client.cancel(id)
    await clock.advance(3_000)
    expect([signal.aborted, signal.reason?.kind]).toEqual([true, 'cancelled'])
    end.fail(signal.reason)
    await clock.settle()
    expect(await statuses(client, tasks)).toEqual(['cancelled', 'cancelled', 'cancelled'])
  })
})

describe('the shortest timeout of a batch', () => {
  it('counts for all: each fails under its own retries, and its error says which timeout it was', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const signals: AbortSignal[] = []
    const end = gate<string[]>()
    const tasks = [
      ...(await submitAll(client, [1], { timeout: '10s', maxRetries: 0 })),
      ...(await submitAll(client, [2], { timeout: '60s', maxRetries: 0 })),
      ...(await submitAll(client, [3], { timeout: null, maxRetries: 0 })),
    ]
    client
      .worker()
      .handleMany(insert, { size: 10 }, (batch, ctx) => {
        signals.push(ctx.signal, ...batch.map((task) => ctx.of(task).signal))
        return end.opened
      })
      .start()
    await clock.advance(9_999)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false, false])
    await clock.advance(1)
    expect(signals.map(({ reason }) => reason?.kind)).toEqual(['timeout', 'timeout', 'timeout', 'timeout'])
    const after = await read(client, tasks)
    expect(after.map(({ status, lastError }) => [status, lastError?.name, lastError?.message])).toEqual([
      ['failed', 'TimeoutError', 'timed out after 10s'],
      ['failed', 'TimeoutError', 'timed out after 10s, the shortest timeout of its batch'],
      ['failed', 'TimeoutError', 'timed out after 10s, the shortest timeout of its batch'],
    ])
    end.open(['late', 'late', 'late'])
    await clock.settle()
    expect(
      (await read(client, tasks)).map(({ revision }) => revision),
      'too late to count',
    ).toEqual([3, 3, 3])
  })

  it('a batch that does not stop is stuck: one slot, with its tasks named', async () => {
    const lines: string[] = []
    const logger: Logger = { ...silentLogger, warn: (line) => void lines.push(line) }
    const { client, clock } = await begin({ logger })
    const stuck: string[] = []
    client
      .worker({ id: 'w', concurrency: 2, stuckAfter: '1s', hooks: { onStuck: ({ id }) => void stuck.push(id) } })
      .handleMany(insert, { size: 3 }, () => new Promise(() => {}))
      .handle('good', () => 'done')
      .start()
    const tasks = await submitAll(client, upTo(3), { timeout: '10s', maxRetries: 0 })
    await clock.advance(12_000)
    const [info] = await client.workers()
    expect(info).toMatchObject({ stuck: { count: 1 }, claiming: true })
    expect(info!.stuck.tasks.map(({ id }) => id)).toEqual(tasks.map(({ id }) => id))
    expect(stuck).toEqual(tasks.map(({ id }) => id))
    expect(lines.filter((line) => line.includes('stuck'))).toEqual([
      "the batch handler of 'insert' is stuck: it has not settled 1s after its timeout; others get its slot (1 stuck, 2 slots)",
    ])
    const good = await client.submit('good', {})
    await clock.advance(2_000)
    expect((await client.get(good.id)).status).toBe('completed')
  })
})

describe('waiting for a batch', () => {
  const waiting = async (wait: string, options: { leaseTtl?: string; concurrency?: number } = {}) => {
    const bench = await begin()
    const calls: number[][] = []
    const worker = bench.client
      .worker({ concurrency: 1, ...options })
      .handleMany(insert, { size: 4, wait }, (batch) => {
        calls.push(inputsOf(batch))
        return batch.map(() => 'done')
      })
      .handle('single', () => 'done')
      .start()
    await bench.clock.settle()
    return { ...bench, worker, calls }
  }

  it('the first task waits for others, as long as it may; a full batch does not wait', async () => {
    const { client, clock, calls } = await waiting('2s')
    await submitAll(client, [1])
    await clock.settle()
    await clock.advance(1_000)
    await submitAll(client, [2])
    await clock.advance(999)
    expect(calls).toEqual([])
    await clock.advance(1)
    expect(calls).toEqual([[1, 2]])
    await submitAll(client, [3, 4])
    await clock.advance(500)
    await submitAll(client, [5, 6])
    await clock.settle()
    expect(calls).toEqual([
      [1, 2],
      [3, 4, 5, 6],
    ])
  })

  it('never longer than half the lease, which is renewed meanwhile', async () => {
    const { client, clock, calls } = await waiting('1h', { leaseTtl: '6s' })
    const [task] = await submitAll(client, [1])
    await clock.settle()
    await clock.advance(2_999)
    expect([calls, (await client.get(task!.id)).status]).toEqual([[], 'running'])
    await clock.advance(1)
    expect(calls).toEqual([[1]])
    expect((await client.get(task!.id)).attempts).toBe(1)
  })

  it('takes no slot: a single task runs meanwhile in the only one', async () => {
    const { client, clock, calls } = await waiting('2s')
    await submitAll(client, [1])
    await clock.settle()
    const single = await client.submit('single', {})
    await clock.advance(1_000)
    expect([calls, (await client.get(single.id)).status]).toEqual([[], 'completed'])
  })

  it('ends with the worker: what waits is released without a charge', async () => {
    const { client, clock, calls, worker } = await waiting('2s')
    const tasks = await submitAll(client, [1, 2])
    await clock.settle()
    expect(await statuses(client, tasks)).toEqual(['running', 'running'])
    await worker.stop()
    expect(calls).toEqual([])
    for (const task of await read(client, tasks)) {
      expect(shown(task)).toMatchObject({ status: 'pending', retryCount: 0, availableAt: tasks[0]!.availableAt })
      expect(movesOf(task)).toEqual(['submit → pending', 'claim → running', 'release → pending'])
    }
  })

  it('ends with a pause of the queue', async () => {
    const { client, clock, calls } = await waiting('2s')
    const tasks = await submitAll(client, [1])
    await clock.settle()
    await client.queue('default').pause()
    await clock.advance(5_000)
    expect([calls, await statuses(client, tasks)]).toEqual([[], ['pending']])
  })

  it('a worker that drains does not wait', async () => {
    const { client } = await begin()
    await submitAll(client, upTo(5))
    const calls: number[][] = []
    await client
      .worker()
      .handleMany(insert, { size: 4, wait: '2s' }, (batch) => {
        calls.push(inputsOf(batch))
        return batch.map(() => 'done')
      })
      .drain()
    expect(calls.flat()).toEqual(upTo(5))
    expect(calls[0]).toHaveLength(4)
  })
})

describe('stopping a worker', () => {
  it('aborts the batch with shutdown after stopTimeout; what settles then is released without a retry', async () => {
    const { client, clock } = await begin()
    const worker = client
      .worker({ stopTimeout: '10s' })
      .handleMany(
        insert,
        { size: 3 },
        (_, ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))),
      )
      .start()
    const tasks = await submitAll(client, upTo(3))
    await clock.settle()
    const stopped = worker.stop()
    await clock.advance(10_000)
    await stopped
    for (const task of await read(client, tasks))
      expect(shown(task)).toMatchObject({ status: 'pending', retryCount: 0, lastError: null })
  })
})

describe('middleware', () => {
  it('runs around each task of a batch, and may end one without the handler', async () => {
    const { client } = await begin()
    const tasks = await submitAll(client, upTo(4))
    const local = new AsyncLocalStorage<string>()
    const seen: string[] = []
    const calls: number[][] = []
    await client
      .worker()
      .use(async (ctx, next) => {
        if (ctx.task.input === 2) return 'skipped'
        const output = await local.run(ctx.task.id, next)
        seen.push(`${ctx.task.input}: ${output}`)
        return output
      })
      .handleMany(insert, { size: 10 }, (batch) => {
        calls.push(inputsOf(batch))
        expect(local.getStore(), 'no context of one task reaches the call for all').toBeUndefined()
        return batch.map(({ input }) => `row ${input}`)
      })
      .drain()
    expect(calls).toEqual([[0, 1, 3]])
    expect(seen).toEqual(['0: row 0', '1: row 1', '3: row 3'])
    expect((await client.get(tasks[2]!.id)).output).toBe('skipped')
  })
})

describe('what handleMany refuses', () => {
  it('isolation, sizes that are none, other options, a second handler', async () => {
    const { client } = await begin()
    const worker = client.worker()
    const refused = (code: string, message: RegExp, call: () => unknown): void =>
      expect(call).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }))
    const handler = () => []
    refused('NOT_IN_ISOLATION', /cannot be isolated/, () =>
      worker.handleMany('t', { size: 2 }, { isolate: 'thread', module: import.meta.url } as never),
    )
    for (const size of [0, 1_001, 1.5, undefined])
      refused('INVALID_OPTION', /^size must be a whole number from 1 to 1000/, () =>
        worker.handleMany('t', { size: size as number }, handler),
      )
    refused('INVALID_OPTION', /delay is not an option of handleMany/, () =>
      worker.handleMany('t', { size: 2, delay: '1s' } as never, handler),
    )
    refused('INVALID_OPTION', /is not a function/, () => worker.handleMany('t', { size: 2 }, 5 as never))
    refused('INVALID_DURATION', /wait/, () => worker.handleMany('t', { size: 2, wait: 5 as never }, handler))
    worker.handleMany('t', { size: 2 }, handler)
    refused('INVALID_OPTION', /has a handler already/, () => worker.handle('t', () => {}))
    expect(worker.types).toEqual(['t'])
  })
})

it('a lost reply to the end of a batch is recognised for each task', async () => {
  const { client, another, passing } = await begin()
  const tasks = await submitAll(client, upTo(5))
  let lost = 0
  const cut = await another({
    through: (store) => lossy(store, (call) => (call === 'commit' && lost++ === 0 ? 'lose-reply' : 'pass')),
  })
  let calls = 0
  await passing(
    cut
      .worker()
      .handleMany(insert, { size: 5 }, (batch) => {
        calls++
        return batch.map(({ input }) => (input === 2 ? new PermanentError('no') : 'done'))
      })
      .drain(),
  )
  expect(calls).toBe(1)
  expect(await statuses(client, tasks)).toEqual(['completed', 'completed', 'failed', 'completed', 'completed'])
})

it('tasks that are retried come back in later batches, beside new ones, until each has ended', async () => {
  const { client, clock } = await begin({ random: () => 0.5 })
  const tasks = await submitAll(client, upTo(60), { maxRetries: 10 })
  client
    .worker({ concurrency: 3 })
    .handleMany(insert, { size: 7, wait: '100ms' }, (batch) =>
      batch.map(({ input, attempts }) => (attempts <= input % 4 ? new Error('again') : `run ${attempts}`)),
    )
    .start()
  await clock.advance(120_000)
  const after = await read(client, tasks)
  expect(after.map(({ output }) => output)).toEqual(upTo(60).map((n) => `run ${(n % 4) + 1}`))
})
