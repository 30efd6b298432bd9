/** What a new user meets in the first hour: nothing dangerous happens because something was left out or misspelt. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { isSupportedNode, isTooOldToRun, unsupportedNode } from '../../src/core/host/node-version.ts'
import { backoff, RETRY_POLICIES, type RetryPolicyName } from '../../src/core/retry.ts'
import { nearest } from '../../src/core/values/option-names.ts'
import { connect, defineTask, type Logger, silentLogger } from '../../src/index.ts'
import { createMetrics } from '../../src/metrics/index.ts'
import { askPassword, servePasswords } from '../../src/store/postgres/password-channel.ts'
import { mustBeSafe } from '../../src/store/sqlite/file/version.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import { threadFile } from '../../src/store/threads/thread-file.ts'
import { begin, refuses, shown } from './setup.ts'

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-edges-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

describe('an address', () => {
  it.each([[undefined], [''], [null]])('that is %j is refused: only connect() means the default', async (address) => {
    await refuses(
      'INVALID_OPTION',
      /the address is .*: is its environment variable set\?/,
    )(connect(address as never, { logger: silentLogger }))
  })

  it('that is empty in HOLDFAST_URL is refused: only without the variable connect() means a file', async () => {
    vi.stubEnv('HOLDFAST_URL', '')
    onTestFinished(() => void vi.unstubAllEnvs())
    await refuses('INVALID_OPTION', /HOLDFAST_URL is set, but empty: name a store in it, or unset it/)(connect())
  })

  it('that is neither a text nor a store is refused', async () => {
    await refuses('INVALID_OPTION', /must be a text, or a store/)(connect(new URL('sqlite:./a.db') as never))
  })

  it('in a folder that does not exist is refused, and the folder is not made', async () => {
    const missing = join(folder(), 'no', 'such')
    await refuses(
      'STORE_NOT_FOUND',
      new RegExp(`there is no folder ${missing}`),
    )(connect(`sqlite:${missing}/tasks.db`, { logger: silentLogger }))
    expect(existsSync(missing)).toBe(false)
  })

  it('of a file loses the line break of the file of secrets that it came from', async () => {
    const path = join(folder(), 'tasks.db')
    const client = await connect(`sqlite:${path}\n`, { logger: silentLogger })
    onTestFinished(() => client.close())
    expect(client.address).toBe(`sqlite:${path}`)
    await refuses('INVALID_OPTION', /the address is empty/)(connect(' \n'))
  })

  it('in quotes is refused without showing the password', async () => {
    await refuses(
      'INVALID_OPTION',
      /^'"postgres:\/\/ann@db\/app"' is not/,
    )(connect('"postgres://ann:pa#ss@word@db/app"'))
  })

  it('of a new store is told as a whole', async () => {
    const told: string[] = []
    const logger: Logger = { ...silentLogger, info: (message) => void told.push(message) }
    const path = join(folder(), 'tasks.db')
    await (await connect(`sqlite:${path}`, { logger })).close()
    expect(told).toEqual([`created a store at sqlite:${path}`])
  })
})

describe('a logger', () => {
  it('that lacks a function is refused when it is given, not at its first line', async () => {
    for (const logger of [false, null, {}, { ...silentLogger, warn: undefined }])
      await refuses('INVALID_OPTION', /logger has no function .*warn/)(connect('memory:', { logger } as never))
  })
})

describe('an option that nobody knows', () => {
  it('is refused with what was probably meant, wherever it is given', async () => {
    const { client } = await begin()
    await refuses(
      'INVALID_OPTION',
      /maxPayloads is not an option of connect: did you mean maxPayload\?/,
    )(connect('memory:', { maxPayloads: 1 } as never))
    await refuses(
      'INVALID_OPTION',
      /crom is not an option of schedules.ensure: did you mean cron\?/,
    )(client.schedules.ensure({ id: 'x', type: 'work', crom: '* * * * *' } as never))
    await refuses(
      'INVALID_OPTION',
      /maxRetry is not an option of defaults: did you mean maxRetries\?/,
    )(connect('memory:', { defaults: { maxRetry: 1 } } as never))
    await refuses(
      'INVALID_OPTION',
      /scheme is not an option of postgres: did you mean schema\?/,
    )(connect('postgres://nowhere', { postgres: { scheme: 'x' } } as never))
    const { id } = await client.submit('work', 1)
    for (const [call, message] of [
      [
        () => openSqlite('never-made.db', { creat: true } as never),
        /creat is not an option of sqlite: did you mean create\?/,
      ],
      [() => connect('s3://bucket', { s3: { timeout: 1 } } as never), /timeout is not an option of s3/],
      [
        () => connect('nats://nowhere/jobs', { nats: { replicsa: 3 } } as never),
        /replicsa is not an option of nats: did you mean replicas\?/,
      ],
      [() => client.wait(id, { timeuot: '1s' } as never), /timeuot is not an option of wait: did you mean timeout\?/],
      [
        () => client.claim(id, { workerId: 'me', leaseTll: '9s' } as never),
        /leaseTll is not an option of a claim: did you mean leaseTtl\?/,
      ],
      [
        () => client.claimNext({ workerId: 'me', type: ['work'] } as never),
        /type is not an option of a claim: did you mean types\?/,
      ],
      [
        () =>
          client
            .worker()
            .handle('x', () => 1)
            .run({ signal: false } as never),
        /signal is not an option of run: did you mean signals\?/,
      ],
      [
        () => client.submit('work', 1, { key: 'k' } as never),
        /key is not an option of submit: did you mean idempotencyKey\?/,
      ],
      [() => client.submit('work', 1, { runAt: 0 } as never), /runAt is not an option of submit: did you mean at\?/],
    ] as const)
      await refuses('INVALID_OPTION', message)(call())
    await refuses(
      'INVALID_OPTION',
      /priorty is not an option of submit: did you mean priority\?/,
    )(client.submit('work', 1, { priorty: 1 } as never))
    await refuses(
      'INVALID_OPTION',
      /canarry is not an option of replay: did you mean canary\?/,
    )(client.deadLetters.replay({}, { canarry: 1 } as never))
    await refuses(
      'INVALID_OPTION',
      /idempotencyKey is not an option of replay/,
    )(client.deadLetters.replay('01a1e65e-5348-7451-a917-d20c8623ec29', { idempotencyKey: 'k' } as never))
    await refuses(
      'INVALID_OPTION',
      /dryrun is not an option of purge: did you mean dryRun\?/,
    )(client.deadLetters.purge({}, { dryrun: true } as never))
    const cases: [make: () => unknown, message: RegExp][] = [
      [
        () => client.worker({ concurency: 1 } as never),
        /concurency is not an option of worker: did you mean concurrency\?/,
      ],
      [
        () => client.worker({ hooks: { onTaskEnds() {} } } as never),
        /onTaskEnds is not an option of hooks: did you mean onTaskEnd\?/,
      ],
      [
        () => defineTask('x', { maxRetrys: 1 } as never),
        /maxRetrys is not an option of defineTask: did you mean maxRetries\?/,
      ],
      [() => defineTask('x', { idempotencyKey: 'k' } as never), /idempotencyKey is not an option of defineTask/],
      [() => client.worker({ queues: 'mail' as never }), /queues must be a list/],
      [() => client.worker().handle(undefined as never, () => 1), /the type is undefined, not a name or a definition/],
      [
        () => createMetrics(client, { off: 'store' } as never),
        /off is not an option of createMetrics: did you mean of\?/,
      ],
      [() => createMetrics(client, { of: 'stor' as never }), /of must be 'process' or 'store'/],
      [() => client.worker().stop({ timeot: 0 } as never), /timeot is not an option of stop: did you mean timeout\?/],
      [() => client.changes({ typ: 'x' } as never), /typ is not an option of changes: did you mean type\?/],
      [() => client.worker().handle({ n: 1 } as never, () => 1), /the type is a value of type object, not a name/],
      [
        () => client.worker().handle('x', { module: import.meta.url, isolate: 'thread', heep: 64 } as never),
        /heep is not an option of an isolated handler: did you mean heap\?/,
      ],
    ]
    for (const [make, message] of cases) expect(make).toThrow(message)
  })

  it('in a query is refused, too: without it the query would mean every task', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', 1, { maxRetries: 0 })
    const { id: dead } = await client.submit('work', 1, { maxRetries: 0, priority: 1 })
    await (await client.claim(dead, { workerId: 'me' })).fail(new Error('no'))
    const typed = { typ: 'mail' } as never
    const refusesIt = refuses('INVALID_OPTION', /^typ is not an option of (a query|list): did you mean type\?/)
    await refusesIt(client.list(typed))
    await refusesIt(client.count(typed))
    await refusesIt(client.cancelMany(typed))
    await refusesIt(client.deadLetters.list(typed))
    await refusesIt(client.deadLetters.groups(typed))
    await refusesIt(client.deadLetters.replay(typed))
    await refusesIt(client.deadLetters.purge(typed))
    // A variable that was never set.
    const unset = { type: undefined } as never
    const refusesUnset = refuses(
      'INVALID_OPTION',
      /^type is undefined: give a value, or leave it out to mean all tasks/,
    )
    await refusesUnset(client.cancelMany(unset))
    await refusesUnset(client.deadLetters.replay(unset))
    await refusesUnset(client.deadLetters.purge(unset))
    await refuses('INVALID_OPTION', /^group is undefined/)(client.deadLetters.purge({ group: undefined } as never))
    expect((await client.list(unset)).tasks).toHaveLength(2)
    expect((await client.get(id)).status).toBe('pending')
    expect((await client.get(dead)).status).toBe('failed')
  })

  it('far from all that are known has no advice', () => {
    expect(nearest('colour', ['queue', 'priority'])).toBeNull()
    expect(nearest('Queue', ['queue', 'priority'])).toBe('queue')
    expect(nearest('key', ['queue', 'idempotencyKey'])).toBe('idempotencyKey')
  })
})

describe('defineTask', () => {
  it('checks its durations, names and numbers when it is made', () => {
    expect(() => defineTask('x', { timeout: '5' })).toThrow(/timeout: '5' has no unit/)
    expect(() => defineTask('x', { idempotencyTtl: 5 as never })).toThrow(/idempotencyTtl/)
    expect(() => defineTask('x', { retryPolicy: { base: '1x' as never } })).toThrow(/retryPolicy.base/)
    expect(() => defineTask('x', { retryPolicy: 'eager' as never })).toThrow(/none of quick, patient, stubborn/)
    expect(() => defineTask('x', { queue: 'a b' })).toThrow(/queue 'a b'/)
  })

  it('with a queue that a worker does not serve is refused by its handle', async () => {
    const { client } = await begin()
    const mail = defineTask('mail', { queue: 'mail' })
    expect(() => client.worker().handle(mail, () => {})).toThrow(
      /'mail' goes to queue 'mail', which this worker does not serve: add it, worker\(\{ queues: \['default', 'mail'\] \}\)/,
    )
    client.worker({ queues: ['default', 'mail'] }).handle(mail, () => {})
  })
})

describe('defaults of a client', () => {
  it('hold for what a definition and a call leave out', async () => {
    const { client } = await begin({ defaults: { maxRetries: 7, timeout: '1h', retryPolicy: { base: '9s' } } })
    const quick = defineTask('quick', { maxAttempts: 2 })
    expect(shown(await client.submit('work', 1))).toMatchObject({ maxRetries: 7, timeout: 3_600_000 })
    expect((await client.submit('work', 1)).retryPolicy.base).toBe(9_000)
    expect(shown(await client.submit(quick, 1))).toMatchObject({ maxRetries: 1, timeout: 3_600_000 })
    expect(shown(await client.submit('work', 1, { maxRetries: 0, timeout: null }))).toMatchObject({
      maxRetries: 0,
      timeout: null,
    })
    const [many] = await client.submitMany([{ type: 'work', input: 1 }])
    expect(many).toMatchObject({ ok: true, task: { maxRetries: 7 } })
  })

  it('are checked at once', async () => {
    await refuses('INVALID_DURATION')(connect('memory:', { defaults: { timeout: '5' } }))
    await refuses('INVALID_OPTION')(connect('memory:', { defaults: { maxRetries: 1, maxAttempts: 2 } }))
    await refuses('INVALID_OPTION')(connect('memory:', { defaults: { queue: 'x' } as never }))
  })
})

describe('a retry policy by name', () => {
  it('brings its own number of retries, unless the call says otherwise', async () => {
    const { client } = await begin({ defaults: { maxRetries: 7 } })
    const stubborn = await client.submit('work', 1, { retryPolicy: 'stubborn' })
    expect(shown(stubborn)).toMatchObject({ maxRetries: 20, retryPolicy: { base: 60_000, max: 21_600_000 } })
    expect((await client.submit('work', 1, { retryPolicy: 'patient', maxRetries: 2 })).maxRetries).toBe(2)
    await refuses('INVALID_OPTION', /none of quick/)(client.submit('work', 1, { retryPolicy: 'forever' as never }))
  })

  it.each<[RetryPolicyName, least: number, most: number]>([
    ['quick', 0, 3_500],
    ['patient', 7 * 60_000, 16 * 60_000],
    ['stubborn', 36 * 3_600_000, 76 * 3_600_000],
  ])('%s goes on for as long as it says', (name, least, most) => {
    const { maxRetries, ...policy } = RETRY_POLICIES[name]
    const lasts = (random: number): number =>
      Array.from({ length: maxRetries }, (_, n) => backoff(policy, n, random)).reduce((a, b) => a + b)
    expect(lasts(0)).toBeGreaterThanOrEqual(least)
    expect(lasts(0.999_999)).toBeLessThanOrEqual(most)
  })
})

describe('the pause of a queue that was never used', () => {
  it('is told with the name that was probably meant, and shows in stats and in what doctor finds', async () => {
    const told: string[] = []
    const logger: Logger = { ...silentLogger, warn: (message) => void told.push(message) }
    const { client } = await begin({ logger })
    await client.submit('work', 1, { queue: 'mail' })
    await client.queue('mial').pause()
    expect(told).toEqual([`queue 'mial' has never been used here: did you mean 'mail'? It is paused all the same`])
    expect((await client.stats()).map(({ queue, paused }) => [queue, paused])).toEqual([
      ['mail', false],
      ['mial', true],
    ])
    expect((await client.examine()).map(({ found }) => found)).toContain(`queue 'mial' is paused and empty`)
    await client.queue('mail').pause()
    expect(told).toHaveLength(1)
  })
})

describe('a schedule that is ensured', () => {
  const daily = { id: 'daily', type: 'report', input: { a: 1, b: [2] }, every: '24h' } as const

  it('or updated with an equal plan keeps its grid: a daily job that is deployed daily fires', async () => {
    const { client, clock } = await begin()
    const made = await client.schedules.ensure(daily)
    for (let day = 0; day < 3; day++) {
      await clock.advance(23 * 3_600_000)
      const again = await client.schedules.ensure({ ...daily, input: { b: [2], a: 1 } })
      expect(again.incarnation).toBe(made.incarnation)
      await client.schedules.update('daily', { every: { hours: 24 }, mode: 'fixed-rate' })
    }
    client
      .worker()
      .handle('report', () => {})
      .start()
    expect(await client.schedules.next('daily')).toEqual([made.createdAt + 3 * 24 * 3_600_000])
    await clock.advance(4 * 3_600_000)
    expect((await client.list({ type: 'report' })).tasks).toHaveLength(1)
  })

  it('takes what has changed, and the default for what is said no more', async () => {
    const { client, clock } = await begin()
    const made = await client.schedules.ensure({ ...daily, overlap: 'allow', options: { priority: 5 } })
    await clock.advance(1_000)
    const edited = await client.schedules.ensure({ ...daily, input: 2 })
    expect(edited).toMatchObject({ input: 2, overlap: 'skip', options: {}, nextAt: made.nextAt })
    const moved = await client.schedules.ensure({ id: 'daily', type: 'report', input: 2, cron: '0 6 * * *' })
    expect(moved).toMatchObject({ cron: '0 6 * * *', timezone: 'UTC', every: null })
    await client.schedules.delete('daily')
    expect((await client.schedules.ensure(daily)).every).toBe(86_400_000)
  })
})

describe('a password that is a function', () => {
  it('is asked for by the thread that renews leases, anew for each connection', async () => {
    let n = 0
    const { channel, close } = servePasswords(async () => `token ${++n}`)
    onTestFinished(close)
    expect(await askPassword(channel, 20_000)).toBe('token 1')
    expect(await Promise.all([askPassword(channel, 20_000), askPassword(channel, 20_000)])).toEqual(
      expect.arrayContaining(['token 2', 'token 3']),
    )
    await expect(askPassword('nobody', 20)).rejects.toThrow(/timeout: no password within 20 ms/)
  })
})

describe('the file of a thread', () => {
  it('is found beside its store, and its absence, or that of a place, is told', () => {
    const beside = new URL('../../src/store/postgres/store.ts', import.meta.url).href
    expect(threadFile(beside)?.href).toMatch(/postgres\/thread\.ts$/)
    expect(threadFile(import.meta.url)).toBeNull()
    expect(threadFile(undefined)).toBeNull()
  })
})

describe('a task', () => {
  it('is shown by console.log', async () => {
    const { client } = await begin()
    const task = await client.submit('work', { n: 1 })
    expect(inspect(task)).toContain(task.id)
    expect(inspect(task)).toContain('n: 1')
  })

  it('is copied whole by a spread, with its payloads parsed', async () => {
    const { client } = await begin()
    const task = await client.submit('work', { n: 1 }, { tags: { team: 'a' } })
    const { id, input, output, status, tags, retryPolicy, lease, history, ...others } = { ...task }
    expect([id, input, output, status, tags, lease]).toEqual([task.id, { n: 1 }, null, 'pending', { team: 'a' }, null])
    expect([retryPolicy.base, history.length]).toEqual([500, 1])
    const shown = new Set([...Object.keys(task.toJSON()), 'deduplicated', 'coalesced'])
    expect(new Set(Object.keys({ ...task }))).toEqual(shown)
    expect(others).toMatchObject({ type: 'work', progress: null, createdAt: expect.any(Number) })
  })

  it('is read by its definition, and one of another type is refused', async () => {
    const { client, passing } = await begin()
    const mail = defineTask<{ to: string }, number>('mail')
    const { id } = await client.submit(mail, { to: 'ann' })
    expect((await client.get(mail, id)).input.to).toBe('ann')
    const other = defineTask<string>('other')
    await refuses('INVALID_OPTION', /is a 'mail', not a 'other'/)(client.get(other, id))
    await (await client.claim(id, { workerId: 'me' })).complete(7)
    expect(await passing(client.wait(mail, id))).toBe(7)
    await refuses('INVALID_OPTION', /is a 'mail', not a 'other'/)(passing(client.wait(other, id)))
  })
})

describe('a Node that is not supported', () => {
  it('is told in one sentence, and its SQLite does not open a file', () => {
    for (const good of ['22.22.3', '22.23.0', '24.15.0', '24.21.0', '26.0.0'])
      expect([good, unsupportedNode(good)]).toEqual([good, null])
    for (const bad of ['18.0.0', '20.20.2', '22.22.2', '23.9.0', '24.14.9']) expect(isSupportedNode(bad)).toBe(false)
    expect(unsupportedNode('20.20.2')).toBe(
      'Holdfast needs Node 22.22.3 or later of 22, or 24.15 or later; this is Node 20.20.2',
    )
    expect(['18.0.0', '20.20.2', '22.1.0', '24.14.9'].filter(isTooOldToRun)).toEqual(['18.0.0', '20.20.2'])
    mustBeSafe('3.51.3')
    expect(() => mustBeSafe('3.50.4')).toThrow(/SQLite 3\.50\.4, which can corrupt a file/)
  })
})
