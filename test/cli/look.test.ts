/** Verbs that only look: status, get, list, history, why, stats. */
import { beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, normalised } from './shell.ts'

describe('without a store', () => {
  const folder = makeFolder()

  it.each([
    ['list'],
    ['stats'],
    ['status', '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'],
    ['cancel', '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'],
  ])('%s says so, ends with 5 and makes none', async (...args) => {
    const { code, stdout, stderr } = await folder.run(args)
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    expect(stderr).toContain('(STORE_NOT_FOUND)')
    expect(folder.has('holdfast.db')).toBe(false)
  })
})

describe('with a store', () => {
  const folder = makeFolder()
  const ids: Record<string, string> = {}

  beforeAll(() =>
    folder.withClient(async (client) => {
      const submit = async (name: string, options = {}): Promise<string> =>
        (ids[name] = (await client.submit(name, { name }, options)).id)
      const claim = async (name: string) => client.claim(ids[name]!, { workerId: 'worker-1', leaseTtl: '1h' })
      await submit('waiting')
      await submit('later', {
        at: '2126-01-28T17:00:00Z',
        expiresAt: '2126-01-28T18:00:00.250Z',
        tags: { team: 'blue' },
      })
      await submit('sleeper', { maxReschedules: 100, queue: 'mail' })
      for (let i = 0; i < 4; i++) await (await claim('sleeper')).reschedule(0)
      await (await claim('sleeper')).reschedule('60s')
      await submit('held')
      await claim('held')
      await client.cancel(ids['held']!, { reason: 'ordered twice' })
      await submit('broken', { maxRetries: 0 })
      await (await claim('broken')).fail(new Error('boom\u001b[31m\nsecond line'))
      await submit('late', { ttl: '1h' })
      await client.markExpired(ids['late']!)
      await submit('done')
      await (await claim('done')).complete({ n: 1 })
      await client.queue('mail').pause()
    }),
  )

  const run = (...args: string[]) => folder.run(args)

  it('status prints one fact per line [W03]', async () => {
    const { code, stdout, stderr } = await run('status', ids['later']!)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^expires_at: 2126-01-28T18:00:00\.250Z \(in \d+d( \d+h)?\)$/m)
    expect(stdout).toMatch(/^available_at: 2126-01-28T17:00:00Z \(in \d+d( \d+h)?\)$/m)
    expect(normalised(stdout)).toBe(
      [
        'id: ID',
        'type: later',
        'queue: default',
        'status: pending (scheduled)',
        'priority: 0',
        'attempts: 0',
        'retry_count: 0, max_retries: 3',
        'reschedule_count: 0, max_reschedules: unlimited',
        'created_at: INSTANT (AGO)',
        'available_at: INSTANT (SOON)',
        'expires_at: INSTANT (SOON)',
        'tags: team=blue',
        'input: {"name":"later"}',
        'revision: 1',
        'why: It is scheduled for INSTANT (SOON).',
        '',
      ].join('\n'),
    )
  })

  it('get is an alias of status, and shows how often a task was rescheduled [W07]', async () => {
    const { stdout } = await run('get', ids['sleeper']!)
    expect(stdout).toMatch(/^reschedule_count: 5, max_reschedules: 100$/m)
    expect(normalised(stdout)).toBe(normalised((await run('status', ids['sleeper']!)).stdout))
  })

  it('status --json is the task as the API gives it', async () => {
    const { stdout } = await run('status', ids['done']!, '--json')
    const expected = await folder.withClient((client) => client.get(ids['done']!))
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(expected)))
  })

  it('keeps untrusted control characters away from the terminal', async () => {
    const { stdout } = await run('status', ids['broken']!)
    expect(stdout).toContain('last_error: Error: boom\\u001b[31m\\nsecond line (attempt 1, ')
    expect(stdout).not.toContain('\u001b')
  })

  it('history prints one line per move [W05]', async () => {
    const { code, stdout } = await run('history', ids['sleeper']!)
    expect(code).toBe(0)
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(11)
    expect(lines.slice(0, 3)).toEqual([
      'Version 1: pending (created)',
      'Version 2: running (claimed by worker-1)',
      'Version 3: pending (rescheduled, available_at: +0s, count: 1)',
    ])
    expect(lines.at(-1)).toBe('Version 11: pending (rescheduled, available_at: +60s, count: 5)')
  })

  it('history prints the instants of an expiry', async () => {
    const { stdout } = await run('history', ids['late']!)
    expect(normalised(stdout)).toBe(
      'Version 1: pending (created, expires_at: INSTANT)\nVersion 2: expired (expired_at: INSTANT)\n',
    )
    expect(normalised((await run('history', ids['done']!, '--times')).stdout)).toBe(
      'Version 1: pending (created) at INSTANT\nVersion 2: running (claimed by worker-1) at INSTANT\nVersion 3: completed (by worker-1) at INSTANT\n',
    )
  })

  it('history --json gives the entries', async () => {
    const entries = JSON.parse((await run('history', ids['done']!, '--json')).stdout)
    expect(entries.map(({ n, move, to }: Record<string, unknown>) => [n, move, to])).toEqual([
      [1, 'submit', 'pending'],
      [2, 'claim', 'running'],
      [3, 'complete', 'completed'],
    ])
  })

  it('list shows one row per task, newest first, and omits only archived tasks', async () => {
    const { code, stdout, stderr } = await run('list')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(normalised(stdout).replaceAll(/ {2,}/g, '  ')).toBe(
      [
        'ID  TYPE  QUEUE  STATUS  ATTEMPTS  CREATED  NOTE',
        'ID  done  default  completed  1  AGO',
        'ID  late  default  expired  0  AGO',
        'ID  broken  default  dead  1  AGO  Error: boom\\u001b[31m\\nsecond line',
        'ID  held  default  running  1  AGO  on worker-1',
        'ID  sleeper  mail  scheduled  5  AGO  due SOON',
        'ID  later  default  scheduled  0  AGO  due SOON, expires SOON',
        'ID  waiting  default  ready  0  AGO',
        '',
      ].join('\n'),
    )
  })

  it.each<[args: string[], names: string[]]>([
    [['--status', 'expired'], ['late']],
    [
      ['--status', 'dead,completed', '--status', 'in_flight', '--oldest'],
      ['held', 'broken', 'done'],
    ],
    [['--queue', 'mail'], ['sleeper']],
    [['--type', 'waiting'], ['waiting']],
    [['--tag', 'team=blue'], ['later']],
    [['--tag', 'team=red'], []],
  ])('list %j finds what it asks for [W04]', async (args, names) => {
    const { tasks } = JSON.parse((await run('list', '--json', ...args)).stdout)
    expect(tasks.map(({ type }: { type: string }) => type)).toEqual(names)
  })

  it('list continues at the cursor that it printed on standard error', async () => {
    const first = await run('list', '--limit', '4', '--oldest')
    const [, cursor] = /^more: --cursor (\S+)$/m.exec(first.stderr) ?? []
    const second = await run('list', '--limit', '4', '--oldest', '--cursor', cursor!)
    expect(second.stderr).toBe('')
    const typesOf = (text: string) =>
      text
        .trimEnd()
        .split('\n')
        .slice(1)
        .map((line) => line.split(/ +/)[1])
    expect([...typesOf(first.stdout), ...typesOf(second.stdout)]).toEqual(Object.keys(ids))
  })

  it.each([[['--status', 'nope']], [['--limit', '0']], [['--limit', 'x']], [['--cursor', 'x']], [['--tag', 'x']]])(
    'list %j is bad input',
    async (args) => {
      expect(await run('list', ...args)).toMatchObject({ code: 2, stdout: '' })
    },
  )

  it.each([
    ['waiting', /^It has been ready since .*, but no live worker is registered\.$/m],
    ['later', /^It is scheduled for 2126-01-28T17:00:00Z \(in /m],
    ['sleeper', /^Its handler rescheduled it for .* \(reschedule 5\)\. Its queue 'mail' is also paused\.$/m],
    ['held', /^It is running, and its cancellation was requested at .*; worker-1 holds its lease until /m],
    ['broken', /^It is dead: attempt 1 failed at .* with Error: boom/m],
    ['late', /^It expired at .* before a worker claimed it/m],
    ['done', /^It completed at /m],
  ])('why tells about the task that is %s', async (name, sentence) => {
    const { code, stdout } = await run('why', ids[name]!)
    expect(code).toBe(0)
    expect(stdout).toMatch(sentence)
    expect(stdout).toMatch(/^ {2}queue (default|mail): (not paused|paused), \d+ ready, \d+ running$/m)
    expect(stdout).toMatch(/^ {2}last move: Version \d+: /m)
  })

  it('why --json gives the reason as a word', async () => {
    const told = JSON.parse((await run('why', ids['sleeper']!, '--json')).stdout)
    expect(told).toMatchObject({
      id: ids['sleeper'],
      reason: 'sleeping',
      status: 'pending',
      view: 'scheduled',
      queuePaused: true,
    })
  })

  it('stats counts queue by queue', async () => {
    const { code, stdout } = await run('stats')
    expect(code).toBe(0)
    expect(stdout).toBe(
      [
        'QUEUE          READY  SCHEDULED  RETRYING  PARKED  RUNNING  COMPLETED  FAILED  CANCELLED  EXPIRED  ARCHIVED',
        'default            1          1         0       0        1          1       1          0        1         0',
        'mail (paused)      0          1         0       0        0          0       0          0        0         0',
        'total              1          2         0       0        1          1       1          0        1         0',
        '',
      ].join('\n'),
    )
    expect(JSON.parse((await run('stats', '--json')).stdout)).toMatchObject([
      { queue: 'default', ready: 1, failed: 1 },
      { queue: 'mail', paused: true },
    ])
  })

  it('an unknown task exits with 3, an invalid id with 2', async () => {
    const unknown = await run('status', '00000000-0000-7000-8000-000000000000')
    expect({ code: unknown.code, stdout: unknown.stdout }).toEqual({ code: 3, stdout: '' })
    expect(unknown.stderr).toContain('(TASK_NOT_FOUND)')
    expect((await run('history', 'abc')).code).toBe(2)
  })
})

it('a wait without a timeout shows no date, and a sleep the end that it had', async () => {
  const folder = makeFolder()
  const { id, nap } = await folder.withClient(async (client) => {
    const submitted = await client.submit('order', null)
    const drain = () =>
      client
        .worker()
        .handle('order', async (_, ctx) => {
          await ctx.sleep('nap', '1d')
          await ctx.waitFor('approval', { signal: 'approved' })
        })
        .drain()
    await drain()
    await client.runNow(submitted.id)
    await drain()
    const { steps } = await client.get(submitted.id)
    return { id: submitted.id, nap: steps[0]! }
  })
  const [status, list] = await Promise.all([folder.run(['status', id]), folder.run(['list'])])
  expect(status.stdout).toMatch(/^available_at: when signal approved comes$/m)
  expect(status.stdout).toContain(`nap: over at ${new Date(nap.until!).toISOString()}`)
  expect(list.stdout).toMatch(/ parked +2 .* waits for signal approved$/m)
})
