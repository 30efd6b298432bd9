/** `holdfast worker MODULE`: a user's file, run as a worker process. */
import { describe, expect, it } from 'vitest'
import { exitOf, linesOf, makeFolder } from './shell.ts'

const HANDLERS = `
export default {
  hello: async ({ name }: { name: string }) => \`hello \${name}\`,
  bad: async () => { throw new Error('boom') },
  slow: (_: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason))),
}
`

describe('a worker', () => {
  const folder = makeFolder()
  const modules = makeFolder()
  const submit = async (type: string, ...args: string[]): Promise<string> =>
    (await folder.run(['submit', '-t', type, '-i', '{"name":"ann"}', ...args])).stdout.trim()

  it('drains what is ready with the handlers of a TypeScript file, a line each', async () => {
    folder.write('tasks.ts', HANDLERS)
    const good = await submit('hello')
    const bad = await submit('bad', '--max-retries', '0')
    const { code, stdout, stderr } = await folder.run(['worker', './tasks.ts', '--drain'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^worker \S+ serves default on sqlite:\S+$/)
    expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^✓ completed hello {2}${good} {2}\\d+ms$`)))
    expect(lines).toContainEqual(
      expect.stringMatching(new RegExp(`^✗ failed {4}bad {2}${bad} {2}\\d+ms, by \\S+, error: boom$`)),
    )
    expect(lines.at(-1)).toBe('worker stopped, 2 attempts ended')
    expect(await folder.withClient((client) => client.wait(good))).toBe('hello ann')
  })

  it('takes a function that registers handlers, and functions by the names of types', async () => {
    folder.write(
      'register.js',
      `export default async (worker) => { worker.handle('hello', ({ name }) => name.length) }`,
    )
    folder.write('named.js', `export const hello = ({ name }) => name; export const LIMIT = 3`)
    for (const [module, output] of [
      ['register.js', 3],
      ['named.js', 'ann'],
    ] as const) {
      const id = await submit('hello')
      expect((await folder.run(['worker', module, '--drain'])).code).toBe(0)
      expect(await folder.withClient((client) => client.wait(id))).toBe(output)
    }
  })

  it("does not let V8's space for young objects grow to what it takes by itself", async () => {
    modules.write(
      'spaces.js',
      `import { getHeapSpaceStatistics } from 'node:v8'
      export const many = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size`,
    )
    const sizeAfterDrain = async (env: Record<string, string>): Promise<number> => {
      await modules.withClient((client) =>
        client.submitMany(
          Array.from({ length: 20_000 }, (_, n) => ({ type: 'many', input: { n, text: 'x'.repeat(200) } })),
        ),
      )
      expect((await modules.run(['worker', './spaces.js', '--drain', '--concurrency', '100'], { env })).code).toBe(0)
      const sizes = await modules.withClient(async (client) => (await client.list({ type: 'many', limit: 500 })).tasks)
      return Math.max(...sizes.map(({ output }) => output as number)) / 2 ** 20
    }
    expect(await sizeAfterDrain({})).toBeLessThanOrEqual(16)
    // Whoever sets it has it: the test above can fail.
    expect(await sizeAfterDrain({ NODE_OPTIONS: '--max-semi-space-size=64' })).toBeGreaterThan(16)
  })

  it('serves the given queues', async () => {
    const [here, there] = [await submit('hello', '--queue', 'a'), await submit('hello', '--queue', 'b')]
    await folder.run(['worker', './tasks.ts', '--drain', '--queue', 'a', '--queue', 'c', '--concurrency', '2'])
    const statuses = await folder.withClient(async (client) => [
      (await client.get(here)).status,
      (await client.get(there)).status,
    ])
    expect(statuses).toEqual(['completed', 'pending'])
  })

  it('takes the length of leases, the time between looks, and how long ended tasks are kept', async () => {
    const own = makeFolder()
    own.write('tasks.js', `export const ttl = (_, ctx) => ctx.task.lease.ttl; export const gone = () => 1`)
    const kept = await own.withClient((client) => client.submit('ttl', 1))
    expect(
      (await own.run(['worker', './tasks.js', '--drain', '--lease-ttl', '9s', '--poll-interval', '1s'])).code,
    ).toBe(0)
    await own.withClient(async (client) => expect((await client.get(kept.id)).output).toBe(9_000))
    const gone = await own.withClient((client) => client.submit('gone', 1))
    expect((await own.run(['worker', './tasks.js', '--drain', '--retention', 'completed=0'])).code).toBe(0)
    await own.withClient((client) => expect(client.get(gone.id)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' }))
  })

  it('drains for a time, and fires due schedules, for cron', async () => {
    const own = makeFolder()
    own.write(
      'tasks.js',
      `export const tick = () => 1; export const endless = () => new Promise(() => setInterval(() => {}, 1_000))`,
    )
    await own.withClient((client) => client.schedules.create({ id: 'tick', type: 'tick', input: 1, every: '10ms' }))
    const ran = await own.run(['worker', './tasks.js', '--drain', '--schedules', '--for', '2s', '--stop-timeout', '0'])
    expect(ran.stdout).toMatch(/completed tick/)
    const endless = await own.withClient((client) => client.submit('endless', 1))
    const args = ['worker', './tasks.js', '--drain', '--for', '1s', '--stop-timeout', '0']
    expect((await own.run(args)).code).toBe(0)
    await own.withClient(async (client) => expect((await client.get(endless.id)).retryCount).toBe(0))
    expect(await own.run(['worker', './tasks.js', '--schedules'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--schedules needs --drain'),
    })
  })

  it('gives running handlers --stop-timeout after a signal', async () => {
    const own = makeFolder()
    own.write('tasks.ts', HANDLERS)
    const held = await own.withClient((client) => client.submit('slow', {}))
    const child = own.start(['worker', './tasks.ts', '--json', '--stop-timeout', '1ms'])
    const lines = linesOf(child)
    await own.withClient((client) =>
      expect.poll(async () => (await client.get(held.id)).status, { timeout: 10_000 }).toBe('running'),
    )
    const exited = exitOf(child)
    child.kill('SIGTERM')
    expect(JSON.parse(await lines.until(/"move":"release"/))).toMatchObject({ task: { id: held.id } })
    expect(await exited).toBe(0)
  })

  it.each([
    ['--lease-ttl', '9', 'leaseTtl'],
    ['--poll-interval', 'soon', 'pollInterval'],
    ['--stop-timeout', '-1s', 'stopTimeout'],
    ['--retention', 'complete=7d', 'complete'],
    ['--retention', '7d', '--retention'],
  ])('refuses %s %s', async (flag, value, named) => {
    const { code, stderr } = await folder.run(['worker', './tasks.ts', flag, value])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(named) })
  })

  it('stops on SIGTERM, releases its running tasks, and exits with 0', async () => {
    const child = folder.start(['worker', './tasks.ts', '--json', '--queue', 'slow'])
    const lines = linesOf(child)
    const started = JSON.parse(await lines.until(/started/))
    expect(started).toEqual({
      event: 'started',
      workerId: expect.any(String),
      queues: ['slow'],
      address: expect.any(String),
    })
    const exited = exitOf(child)
    const id = await submit('hello', '--queue', 'slow')
    expect(JSON.parse(await lines.until(/ended/))).toMatchObject({
      event: 'ended',
      move: 'complete',
      status: 'completed',
      task: { id, output: 'hello ann' },
    })
    const held = await submit('slow', '--queue', 'slow')
    await folder.withClient((client) =>
      expect.poll(async () => (await client.get(held)).status, { timeout: 10_000 }).toBe('running'),
    )
    child.kill('SIGTERM')
    child.kill('SIGINT')
    expect(JSON.parse(await lines.until(/"move":"release"/))).toMatchObject({
      status: 'pending',
      task: { id: held, retryCount: 0 },
    })
    expect(JSON.parse(await lines.until(/stopped/))).toMatchObject({ event: 'stopped', ended: 2 })
    expect(await exited).toBe(0)
  })

  it('runs handlers in threads and processes of their own, where the module says so', async () => {
    modules.write(
      'thumb.ts',
      `import { isMainThread } from 'node:worker_threads'
      export const thumb = (input: unknown) => ({ input, isMainThread, pid: process.pid })
      export const crash = () => process.exit(9)`,
    )
    modules.write(
      'isolated.ts',
      `const module = new URL('./thumb.ts', import.meta.url)
      export default {
        thread: { module, export: 'thumb', isolate: 'thread' },
        process: { module, export: 'thumb', isolate: 'process', heap: 128 },
        crash: { module, export: 'crash', isolate: 'process' },
        own: () => process.pid,
      }`,
    )
    const tasks = await modules.withClient((client) =>
      Promise.all(['thread', 'process', 'crash', 'own'].map((type) => client.submit(type, 1, { maxRetries: 0 }))),
    )
    const { code, stderr } = await modules.run(['worker', './isolated.ts', '--drain'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const [thread, process_, crash, own] = await modules.withClient((client) =>
      Promise.all(tasks.map(({ id }) => client.get(id))),
    )
    const pid = own!.output
    expect(thread!.output).toEqual({ input: 1, isMainThread: false, pid })
    expect(process_!.output).toEqual({ input: 1, isMainThread: true, pid: expect.any(Number) })
    expect((process_!.output as { pid: number }).pid).not.toBe(pid)
    expect(crash!.lastError?.message).toBe("the handler's process exited with 9")
  })

  it('exits with 7 for its supervisor when all its slots are stuck, and workers shows it before', async () => {
    const stuck = makeFolder()
    stuck.write('hung.js', `export const hung = () => new Promise(() => setInterval(() => {}, 1_000))`)
    const submitHung = () => stuck.run(['submit', '-t', 'hung', '-i', '1', '--timeout', '100ms', '--max-retries', '0'])
    await Promise.all([submitHung(), submitHung()])
    const options = ['--concurrency', '2', '--stuck-after', '100ms']
    const { code, stdout, stderr } = await stuck.run(['worker', './hung.js', ...options])
    expect(code).toBe(7)
    expect(stdout.match(/! stuck {5}hung/g)).toHaveLength(2)
    expect(stderr).toMatch(/2 handlers of worker \S+ are stuck, as many as it has slots \('hung'\) \(WORKER_STUCK\)/)

    await Promise.all([submitHung(), submitHung()])
    const child = stuck.start(['worker', './hung.js', ...options, '--no-exit-when-stuck'])
    await linesOf(child).until(/serves/)
    await stuck.withClient((client) =>
      expect
        .poll(async () => (await client.workers()).map(({ claiming }) => claiming), { timeout: 20_000 })
        .toEqual([false]),
    )
    expect((await stuck.run(['workers'])).stdout).toMatch(/2, not claiming/)
    const exited = exitOf(child)
    child.kill('SIGTERM')
    expect(await exited).toBe(0)
  })

  it('a second signal ends a drain whose handlers ignore the first', async () => {
    const deaf = makeFolder()
    deaf.write('deaf.js', `export const deaf = () => new Promise(() => setTimeout(() => console.log('runs'), 0))`)
    await deaf.run(['submit', '-t', 'deaf', '-i', '1'])
    const child = deaf.start(['worker', './deaf.js', '--drain', '--stop-timeout', '1h'])
    const exited = exitOf(child)
    await linesOf(child).until(/runs/)
    child.kill('SIGTERM')
    child.kill('SIGINT')
    expect(await exited).toBe(0)
  })

  it.each<[why: string, text: string | null, names: RegExp]>([
    ['that is not there', null, /MODULE 'm.ts' does not exist/],
    ['that throws', `throw new Error('ouch')`, /MODULE 'm.ts' cannot be loaded: ouch[\s\S]*m\.ts:1/],
    [
      'with something that is no handler',
      'export default { hello: 1 }',
      /MODULE 'm.ts' exports 'hello', which is not a function/,
    ],
    ['that imports a syntax error', `import './broken.mjs'`, /cannot be loaded: .* \(`node m\.ts` shows the line\)/],
    ['with an enum', 'enum Kind { A }', /TypeScript enum is not supported .*--import tsx/],
    ['that fails to register', `export default async () => { throw new Error('ouch') }`, /MODULE 'm.ts' failed: ouch/],
    ['without handlers', 'export const a = 1', /NO_HANDLER/],
  ])('refuses a module %s with exit code 2', async (_, text, names) => {
    modules.write('broken.mjs', 'export const a = {')
    if (text !== null) modules.write('m.ts', text)
    const { code, stderr } = await modules.run(['worker', 'm.ts'])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(names) })
  })

  it('does not end in silence when a module never finishes loading', async () => {
    modules.write('m.ts', 'await new Promise(() => {})')
    const { code, stderr } = await modules.run(['worker', 'm.ts'])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('never settles') })
  })
})
