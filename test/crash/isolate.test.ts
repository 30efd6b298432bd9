/** Handlers in threads and processes of their own: whatever they do, it is a failed attempt and nothing else. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Client,
  connect,
  type IsolatedHandler,
  type Logger,
  silentLogger,
  type Task,
  type WorkerOptions,
} from '../../src/index.ts'
import { cleanUp, start, until } from './processes.ts'
import { report } from './seed.ts'

cleanUp()

const module = new URL('./children/isolated-handlers.ts', import.meta.url)

type Isolate = IsolatedHandler['isolate']
type Settings = WorkerOptions & Partial<IsolatedHandler> & { readonly logger?: Logger }

/** A worker for each of these exports; the type is the export's name. */
const begin = async (isolate: Isolate, exports: readonly string[], settings: Settings = {}) => {
  const { logger = silentLogger, heap = 64, grace = '5s', ...options } = settings
  const client = await connect('memory:', { logger })
  onTestFinished(() => client.close())
  const worker = client.worker(options)
  for (const name of exports) worker.handle(name, { module, export: name, isolate, heap, grace })
  worker.start()
  return { client, worker }
}

const run = async (
  client: Client,
  type: string,
  input: unknown = {},
  timeout: string | null = '60s',
): Promise<Task> => {
  const { id } = await client.submit(type, input, { timeout, maxRetries: 0 })
  return ended(client, id)
}

const ended = async (client: Client, id: string): Promise<Task> => {
  await client.wait(id).catch(() => {})
  return client.get(id)
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const pidOf = async (client: Client, id: string): Promise<number> => {
  let pid = 0
  await until('the handler has told its pid', async () => {
    pid = ((await client.get(id)).progress as { pid: number } | null)?.pid ?? 0
    return pid !== 0
  })
  return pid
}

const BAD: readonly (readonly [Isolate, type: string, error: RegExp])[] = [
  ['process', 'loop', /^timed out after 1s$/],
  ['process', 'eat', /^the handler's process ended by SIG(ABRT|TRAP): an abort, or more than its heap of 64 MB$/],
  ['process', 'exit', /^the handler's process exited with 3$/],
  ['process', 'abort', /^the handler's process ended by SIGABRT/],
  ['thread', 'loop', /^timed out after 1s$/],
  ['thread', 'eat', /^the handler's thread needed more than its heap of 64 MB$/],
  ['thread', 'exit', /^the handler's thread exited with 3$/],
]

describe.each(BAD)('[N06] in a %s of its own, a handler that does %s', (isolate, type, error) => {
  it('is a failed attempt: its neighbours do not notice, and its slot is free within a second of its timeout', async () => {
    const { client } = await begin(isolate, ['default', type], { concurrency: 3 })
    await Promise.all([1, 2, 3].map((n) => run(client, 'default', n)))
    const took: number[] = []
    // The machine itself may be late; a slot that is not freed would be late every time.
    while (took.length < 3 && !took.some((ms) => ms < 2_000)) {
      const isEating = type === 'eat'
      const { id } = await client.submit(type, {}, { timeout: isEating ? '60s' : '1s', maxRetries: 0 })
      const neighbours = await Promise.all(Array.from({ length: 20 }, (_, n) => run(client, 'default', n)))
      expect(neighbours.map(({ status, attempts }) => [status, attempts])).toEqual(
        neighbours.map(() => ['completed', 1]),
      )
      const task = await ended(client, id)
      expect(task.status).toBe('failed')
      expect(task.lastError?.message).toMatch(error)
      took.push(isEating ? 0 : task.completedAt! - task.startedAt!)
    }
    if (type !== 'eat') report(`isolate: '${isolate}', ${type}: ${took.join(', ')} ms from claim to end`)
    expect(Math.min(...took)).toBeLessThan(2_000)
    expect((await run(client, 'default', 'after')).status).toBe('completed')
  })
})

describe.each<[Isolate]>([['thread'], ['process']])('in a %s', (isolate) => {
  it('a handler runs elsewhere, one after the other in the same child, with input and output as JSON or bytes', async () => {
    const { client } = await begin(isolate, ['default', 'bytes'], { concurrency: 1 })
    const [first, second] = [await run(client, 'default', { a: [1, 'é'] }), await run(client, 'default', null)]
    expect(first.output).toEqual({
      echo: { a: [1, 'é'] },
      pid: isolate === 'thread' ? process.pid : expect.not.toSatisfy((pid) => pid === process.pid),
      thread: expect.any(Number),
      isMainThread: isolate === 'process',
    })
    expect(second.output).toEqual({ ...(first.output as object), echo: null })
    expect((await run(client, 'bytes', new Uint8Array([1, 255]))).output).toEqual(new Uint8Array([2, 0]))
  })

  it('the context has task, fence, attempt, log and progress; client is NOT_IN_ISOLATION', async () => {
    const lines: unknown[] = []
    const logger: Logger = { ...silentLogger, info: (...line) => void lines.push(line) }
    const { client, worker } = await begin(isolate, ['context'], { logger })
    const task = await run(client, 'context', { a: 1 })
    const { id, type } = task
    expect(task.output).toEqual({
      ...{ id, type, input: { a: 1 }, fence: 1, attempt: 1 },
      ...{ workerId: worker.id, client: 'NOT_IN_ISOLATION' },
    })
    expect(lines).toEqual([['hello from a child', { task: id, type, attempt: 1, n: 1 }]])
  })

  it('errors keep their kind, name, message and stack', async () => {
    const { client } = await begin(isolate, ['throws'])
    const first = async (input: string): Promise<Task> => {
      const { id } = await client.submit('throws', input, { retryPolicy: { base: '1h', jitter: 'none', max: '1h' } })
      await until('the first run is over', async () => (await client.get(id)).history.length > 2)
      return client.get(id)
    }
    const permanent = await first('permanent')
    expect([permanent.status, permanent.lastError]).toMatchObject([
      'failed',
      { name: 'PermanentError', message: 'never again', stack: expect.stringContaining('isolated-handlers.ts') },
    ])
    expect(await first('retryable')).toMatchObject({ status: 'pending', lastError: { name: 'RetryableError' } })
    expect(await first('coded')).toMatchObject({ status: 'pending', lastError: { name: 'TypeError' } })
    expect(await first('thrown reschedule')).toMatchObject({ status: 'pending', rescheduleCount: 1, retryCount: 0 })
    expect(await first('returned reschedule')).toMatchObject({ status: 'pending', rescheduleCount: 1, retryCount: 0 })
  })

  it('an output never fails its task: it is taken as JSON.stringify takes it, or left out with the reason', async () => {
    const warnings: string[] = []
    const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
    const { client } = await begin(isolate, ['returns'], { logger })
    const date = await run(client, 'returns', 'a date')
    expect(date).toMatchObject({ status: 'completed', output: { at: '1970-01-01T00:00:00.000Z' }, outputError: null })
    expect(warnings).toEqual([expect.stringContaining('at')])
    for (const what of ['a bigint', 'a cycle', 'too much']) {
      const { status, output, outputError, attempts } = await run(client, 'returns', what)
      expect([status, output, attempts]).toEqual(['completed', null, 1])
      expect(outputError).toMatch(/output/)
    }
  })

  it('an error that nobody catches is a failed attempt that says so', async () => {
    const { client } = await begin(isolate, ['uncaught', 'default'])
    const task = await run(client, 'uncaught')
    expect(task.lastError?.message).toBe(`the handler's ${isolate} exited with 1: nobody caught this`)
    expect((await run(client, 'default')).status).toBe('completed')
  })

  it('a cancel aborts its signal; one that does not stop is killed after its grace, dead before its end is written', async () => {
    const { client } = await begin(isolate, ['obeys', 'tellsThenLoops'], { grace: '500ms', leaseTtl: '300ms' })
    for (const type of ['obeys', 'tellsThenLoops']) {
      const { id } = await client.submit(type, {}, { timeout: null })
      const pid = await pidOf(client, id)
      await client.cancel(id)
      const task = await ended(client, id)
      expect(task.status).toBe('cancelled')
      expect(task.lastError?.message).toBe(
        type === 'obeys' ? 'aborted: cancelled' : 'did not stop within 500ms of its cancel: killed',
      )
      if (isolate === 'process') expect(isAlive(pid)).toBe(type === 'obeys')
    }
  })

  it('a run whose lease is lost is killed', async () => {
    const { client } = await begin(isolate, ['tellsThenLoops'], { leaseTtl: '300ms', concurrency: 1 })
    const { id } = await client.submit('tellsThenLoops', {}, { timeout: null, maxRetries: 3 })
    const pid = await pidOf(client, id)
    await client.retry(id)
    await until('the second run has begun', async () => (await client.get(id)).attempts === 2)
    if (isolate === 'process') await until('the first is dead', () => !isAlive(pid))
    await client.cancel(id)
  })

  it('a worker that stops kills what does not, and gives it back', async () => {
    const { client, worker } = await begin(isolate, ['hang'])
    const { id } = await client.submit('hang', {}, { timeout: null })
    await until('it runs', async () => (await client.get(id)).status === 'running')
    await worker.stop({ timeout: 0 })
    expect((await client.get(id)).history.at(-1)).toMatchObject({ move: 'release', to: 'pending' })
  })
})

it('what a killed process had started dies with it', async () => {
  const { client } = await begin('process', ['spawns'])
  const { id } = await client.submit('spawns', {}, { timeout: '2s', maxRetries: 0 })
  await pidOf(client, id)
  const { started } = (await client.get(id)).progress as { started: number }
  await ended(client, id)
  await until('it is dead', () => !isAlive(started))
})

it('after kill -9 of the worker none of its children lives on, also none that never yields', async () => {
  const parent = start('isolating', {})
  const { pids } = (await parent.heard('ready')) as unknown as { pids: number[] }
  expect(pids.filter(isAlive)).toEqual(pids)
  expect(pids).toHaveLength(3)
  await parent.kill()
  await until('they are dead', () => !pids.some(isAlive))
})

it.each<[Isolate]>([['thread'], ['process']])(
  'a program that is given as text can isolate in a %s, too',
  async (isolate) => {
    const code = `
    import { connect } from '${new URL('../../src/index.ts', import.meta.url)}'
    const client = await connect('memory:')
    const worker = client.worker().handle('default', { module: '${module}', isolate: '${isolate}' })
    const { id } = await client.submit('default', 'text')
    await worker.drain()
    process.stdout.write((await client.get(id)).status)
    await client.close()`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code])
    expect(stdout).toBe('completed')
  },
)

it('a handler that is described wrong is refused at once', async () => {
  const client = await connect('memory:', { logger: silentLogger })
  onTestFinished(() => client.close())
  const given: readonly (readonly [object, RegExp])[] = [
    [{ module: './nowhere.ts', isolate: 'thread' }, /module of an isolated handler does not exist: .*nowhere\.ts/],
    [{ module, isolate: 'container' }, /isolate of an isolated handler is container: write 'thread' or 'process'/],
    [{ module, isolate: 'thread', heap: 1 }, /heap/],
    [{ module, isolate: 'thread', grace: 5 }, /grace/],
  ]
  for (const [handler, message] of given)
    expect(() => client.worker().handle('a', handler as IsolatedHandler)).toThrow(message)
})
