/** `holdfast/remote` on an HTTP handler: what it sends, what it repeats, what it throws, and its worker. */
import { runInNewContext } from 'node:vm'
import { build, type Platform } from 'esbuild'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { type Right, Tokens } from '../../src/http/index.ts'
import {
  connectRemote,
  defineTask,
  PermanentError,
  type RemoteClient,
  type RemoteOptions,
  type RemoteTask,
  RetryableError,
} from '../../src/remote/index.ts'
import { HOST, openHandler, TOKEN } from './setup.ts'

const add = defineTask('add', {
  input: z.object({ a: z.number(), b: z.number() }),
  output: z.number(),
  queue: 'sums',
  maxRetries: 0,
})

const begin = async (more: Partial<RemoteOptions> = {}, options: Parameters<typeof openHandler>[0] = {}) => {
  const { client, fetch } = await openHandler(options)
  const remote = connectRemote({ url: HOST, token: TOKEN, fetch, ...more })
  return { client, remote, fetch }
}

/** Runs the remote worker until `ended` is there. */
const until = async (remote: RemoteClient, id: string, worker: ReturnType<RemoteClient['worker']>) => {
  const running = worker.run()
  const task = await remote.waitForEnd(id, { timeout: '20s' })
  worker.stop()
  await running
  return task
}

describe('the remote client', () => {
  it('submits, reads, lists, waits and cancels, with the types of the definition', async () => {
    const { client, remote } = await begin()
    const task = await remote.submit(add, { a: 1, b: 2 }, { tags: { from: 'edge' } })
    expectTypeOf(task).toEqualTypeOf<RemoteTask<{ a: number; b: number }, number>>()
    expect(task).toMatchObject({ queue: 'sums', maxRetries: 0, view: 'ready', tags: { from: 'edge' } })
    expect((await remote.get(add, task.id)).input.a).toBe(1)
    expect((await remote.list({ type: add, status: ['ready', 'running'] })).tasks.map(({ id }) => id)).toEqual([
      task.id,
    ])
    const waiting = remote.wait(task)
    await client
      .worker({ queues: ['sums'] })
      .handle(add, ({ a, b }) => a + b)
      .drain()
    expectTypeOf(await waiting).toEqualTypeOf<number>()
    expect(await waiting).toBe(3)
    const other = await remote.submit('other', null, { delay: '1h' })
    expect((await remote.cancel(other.id, { reason: 'ordered twice' })).status).toBe('cancelled')
    await expect(remote.wait(other.id)).rejects.toMatchObject({ name: 'HoldfastError', code: 'TASK_CANCELLED' })
    expect((await remote.retry(other.id)).status).toBe('pending')
    await expect(remote.wait(other.id, { timeout: '1ms' })).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' })
  })

  it('sends bytes, and signals', async () => {
    const { client, remote } = await begin()
    const { id } = await remote.submit('bytes', new Uint8Array([0, 255, 7]))
    expect((await client.get(id)).input).toEqual(new Uint8Array([0, 255, 7]))
    expect((await remote.get(id)).input).toEqual(new Uint8Array([0, 255, 7]))
    await remote.signal(id, 'approved', { by: 'ann' }, { signalId: 'once' })
    await remote.signal(id, 'approved', { by: 'ann' }, { signalId: 'once' })
    expect(await remote.get(id)).toMatchObject({ signals: [{ name: 'approved' }] })
  })

  it('submits many, each with its own result', async () => {
    const { remote } = await begin()
    const results = await remote.submitMany([
      { type: add, input: { a: 1, b: 2 } },
      { type: 'not a name', input: 1 },
    ])
    expect(results).toMatchObject([{ task: { queue: 'sums' } }, { error: { code: 'INVALID_TASK' } }])
  })

  it.each<[what: string, run: (remote: RemoteClient) => Promise<unknown>, code: string]>([
    ['an unknown task', (remote) => remote.get('01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'), 'TASK_NOT_FOUND'],
    ['an input that the schema refuses', (remote) => remote.submit(add, { a: 'x' } as never), 'INVALID_TASK'],
    ['an option that the server refuses', (remote) => remote.submit('a', 1, { priority: 5_000 }), 'INVALID_OPTION'],
    ['a duration without a unit', (remote) => remote.submit('a', 1, { ttl: '5' }), 'INVALID_DURATION'],
    ['an aborted call', (remote) => remote.get('a', { signal: AbortSignal.abort() }), 'ABORTED'],
  ])('throws for %s as the library does', async (_, run, code) => {
    const { remote } = await begin()
    await expect(run(remote)).rejects.toMatchObject({ name: 'HoldfastError', code })
  })

  it('says what a token lacks, and asks for a new one before each request', async () => {
    const tokens: string[] = ['wrong-token-of-nobody-0123456789', TOKEN]
    const { remote } = await begin({ token: () => tokens.shift()! })
    await expect(remote.list()).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      details: { httpCode: 'NOT_AUTHENTICATED', status: 401 },
      fix: expect.stringContaining('token'),
    })
    await expect(remote.list()).resolves.toMatchObject({ tasks: [] })
  })

  it('a submit whose answer is lost is stored once', async () => {
    let lost = 2
    const { client, fetch } = await openHandler()
    const lossy = async (request: Request): Promise<Response> => {
      const response = await fetch(request)
      if (request.method === 'POST' && lost-- > 0) throw new TypeError('fetch failed')
      return response
    }
    const remote = connectRemote({ url: HOST, token: TOKEN, fetch: lossy })
    const task = await remote.submit('a', 1)
    lost = 1
    const keyed = await remote.submit('a', 1, { idempotencyKey: 'once' })
    expect(await client.count()).toMatchObject({ count: 2 })
    expect([task.status, keyed.deduplicated]).toEqual(['pending', true])
  })

  it('a submit that could be stored twice is not sent again', async () => {
    let calls = 0
    const broken = async (): Promise<Response> => {
      calls++
      throw new TypeError('fetch failed')
    }
    const remote = connectRemote({ url: HOST, fetch: broken, retries: 2 })
    await expect(remote.submitMany([{ type: 'a', input: 1 }])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(calls).toBe(1)
    await expect(remote.get('x')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(calls).toBe(4)
  })

  it('says why the server cannot be reached, and why a task died, with the causes', async () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), { code: 'ECONNREFUSED' })
    const unreachable = connectRemote({
      url: HOST,
      fetch: () => Promise.reject(new TypeError('fetch failed', { cause: refused })),
      retries: 0,
    })
    const cause = /TypeError: fetch failed; caused by Error: connect ECONNREFUSED/
    await expect(unreachable.get('x')).rejects.toMatchObject({ message: expect.stringMatching(cause) })
    const { client, remote } = await begin()
    const { id } = await remote.submit('a', 1, { maxRetries: 0 })
    const thrown = new TypeError('fetch failed', { cause: refused })
    await client
      .worker()
      .handle('a', () => Promise.reject(thrown))
      .drain()
    await expect(remote.wait(id)).rejects.toMatchObject({ message: expect.stringMatching(cause) })
  })

  it('refuses an address without its name, and an unknown option of wait', async () => {
    expect(() => connectRemote(HOST as never)).toThrow(/url goes into an object: connectRemote\(\{ url \}\)/)
    const { remote } = await begin()
    await expect(remote.wait('x', { timeuot: '1s' } as never)).rejects.toThrow(/did you mean timeout\?/)
  })

  it('a token that may only submit can submit', async () => {
    const rights: Right[] = ['submit']
    const tokens = new Tokens([{ token: TOKEN, rights }])
    const { remote } = await begin({}, { authorize: tokens.authorize, tokens })
    await expect(remote.submit('a', 1)).resolves.toMatchObject({ status: 'pending' })
    await expect(remote.list()).rejects.toMatchObject({ details: { httpCode: 'NOT_ALLOWED' } })
  })
})

describe('the remote worker', () => {
  it('runs tasks, parses their input, and reports how they end', async () => {
    const { client, remote } = await begin()
    const done = await remote.submit(add, { a: 1, b: 2 })
    const worker = () => remote.worker({ queues: ['sums', 'default'], wait: '1s' })
    expect(
      await until(
        remote,
        done.id,
        worker().handle(add, ({ a, b }) => a + b),
      ),
    ).toMatchObject({ output: 3 })
    const dead = await remote.submit('bad', 1)
    const boom = new PermanentError('no such user', { cause: new Error('404') })
    const failed = await until(
      remote,
      dead.id,
      worker().handle('bad', () => Promise.reject(boom)),
    )
    expect(failed).toMatchObject({
      status: 'failed',
      lastError: { name: 'PermanentError', message: 'no such user', cause: { message: '404' } },
    })
    const parts = await remote.submit('parts', 1, { maxRetries: 0 })
    const driver = Object.assign(new Error('duplicate key'), { code: '23505', detail: 'Key (id)=(7) exists.' })
    const aggregate = worker().handle('parts', () =>
      Promise.any([Promise.reject(driver), Promise.reject(new Error('two'))]),
    )
    expect(await until(remote, parts.id, aggregate)).toMatchObject({
      lastError: {
        name: 'AggregateError',
        errors: [{ message: 'duplicate key', code: '23505', detail: 'Key (id)=(7) exists.' }, { message: 'two' }],
      },
    })
    const again = await remote.submit('again', 1)
    const seen: number[] = []
    const retrying = worker().handle('again', (_, { attempt, reschedule }) => {
      seen.push(attempt)
      if (attempt === 1) throw new RetryableError('busy', { delay: 0 })
      return attempt === 2 ? reschedule(0) : 'ok'
    })
    expect(await until(remote, again.id, retrying)).toMatchObject({ output: 'ok', retryCount: 1, rescheduleCount: 1 })
    expect(seen).toEqual([1, 2, 3])
    expect((await client.get(done.id)).history.map(({ by }) => by)).toContainEqual(expect.stringMatching(/^remote\//))
  })

  it('renews the lease, reports progress, and stops for a cancel', async () => {
    const { client, remote } = await begin()
    const { id } = await remote.submit('long', 1)
    let reason: unknown
    const worker = remote.worker({ leaseTtl: '300ms', wait: '1s' }).handle('long', async (_, ctx) => {
      ctx.progress('half')
      await new Promise((done) => ctx.signal.addEventListener('abort', done))
      reason = ctx.signal.reason
      throw new Error('stopped')
    })
    const running = worker.run()
    await expect.poll(async () => (await client.get(id)).progress, { timeout: 10_000 }).toBe('half')
    await client.cancel(id)
    expect((await remote.waitForEnd(id)).status).toBe('cancelled')
    expect(reason).toMatchObject({ kind: 'cancelled' })
    worker.stop()
    await running
  })

  it('fails a run at its timeout, and gives up one whose lease is lost', async () => {
    const { client, remote } = await begin()
    const errors: Error[] = []
    const slow = await remote.submit('slow', 1, { timeout: '50ms', maxRetries: 0 })
    const worker = () => remote.worker({ leaseTtl: '200ms', wait: '1s', onError: (error) => errors.push(error) })
    const ended = await until(
      remote,
      slow.id,
      worker().handle('slow', () => new Promise(() => {})),
    )
    expect(ended.lastError?.message).toBe('timed out after 50 ms')
    const lost = await remote.submit('lost', 1)
    const aborted = Promise.withResolvers<unknown>()
    const losing = worker().handle('lost', (_, { signal, attempt }) => {
      if (attempt > 1) return 'second'
      return new Promise((_, fail) =>
        signal.addEventListener('abort', () => {
          aborted.resolve(signal.reason)
          fail(signal.reason)
        }),
      )
    })
    const running = losing.run()
    await expect.poll(async () => (await client.get(lost.id)).status, { timeout: 10_000 }).toBe('running')
    await client.retry(lost.id)
    expect(await aborted.promise).toMatchObject({ kind: 'lease-lost' })
    expect(await remote.wait(lost.id)).toBe('second')
    losing.stop()
    await running
    expect(errors).toEqual([])
  })

  it('releases at stop what does not end, and drains what is there', async () => {
    const { client, remote } = await begin()
    const { id } = await remote.submit('endless', 1)
    const worker = remote.worker({ stopTimeout: 0, wait: '1s' }).handle('endless', (_, { signal }) => {
      return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason)))
    })
    const running = worker.run()
    await expect.poll(async () => (await client.get(id)).status, { timeout: 10_000 }).toBe('running')
    worker.stop()
    await running
    expect(await client.get(id)).toMatchObject({ status: 'pending', retryCount: 0 })
    let ran = 0
    await remote
      .worker()
      .handle('endless', () => void ran++)
      .drain({ for: '20s' })
    expect(ran).toBe(1)
    await expect(remote.worker().run()).rejects.toMatchObject({ code: 'NO_HANDLER' })
  })
})

describe('the bundle', () => {
  it.each<Platform>(['browser', 'neutral'])(
    'for platform %s has no import, and runs without Node',
    async (platform) => {
      const { client, fetch } = await openHandler()
      const { outputFiles, warnings } = await build({
        entryPoints: [new URL('../../src/remote/index.ts', import.meta.url).pathname],
        bundle: true,
        write: false,
        format: 'iife',
        globalName: 'remote',
        platform,
        mainFields: ['module', 'main'],
        minify: true,
      })
      const code = outputFiles[0]!.text
      expect(warnings).toEqual([])
      expect(code).not.toMatch(/["']node:|\brequire\(/)
      expect(code.length).toBeLessThan(60_000)
      const page = {
        fetch,
        Request,
        Response,
        URLSearchParams,
        AbortController,
        AbortSignal,
        crypto,
        performance,
        setTimeout,
        clearTimeout,
        setInterval,
        clearInterval,
        atob,
        btoa,
        Uint8Array,
        DataView,
      }
      const run = `(async () => {
      const client = remote.connectRemote({ url: '${HOST}', token: '${TOKEN}', fetch })
      const task = await client.submit('add', { a: 1, b: 2 })
      await client.worker().handle('add', ({ a, b }) => a + b).drain()
      return { id: task.id, output: await client.wait(task), buffer: typeof Buffer, process: typeof process }
    })()`
      const result = (await runInNewContext(`${code}; ${run}`, page)) as { id: string }
      expect({ ...result }).toEqual({ id: expect.any(String), output: 3, buffer: 'undefined', process: 'undefined' })
      expect((await client.get(result.id)).status).toBe('completed')
    },
  )
})
