/** `holdfast schedule …`: every verb as a user types it, for people and as JSON. */
import { describe, expect, it } from 'vitest'
import { SCHEDULE_VERBS } from '../../src/cli/program/schedule-verbs.ts'
import { exitOf, linesOf, makeFolder, normalised, type Ran } from './shell.ts'

const CREATE = ['schedule', 'create', 'nightly', '-t', 'report', '-i', '{"day":1}']
const NIGHTLY = [...CREATE, '--cron', '30 2 * * *', '--timezone', 'Europe/Berlin']

describe('a schedule from the shell', () => {
  const folder = makeFolder()
  const run = (...args: string[]): Promise<Ran> => folder.run(['schedule', ...args])

  it('create creates the store and says when the schedule fires first', async () => {
    const { code, stdout } = await folder.run([...NIGHTLY, '--queue', 'reports', '--tag', 'team=a', '--timeout', '30s'])
    expect({ code, stdout: normalised(stdout) }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^nightly created, next_at: INSTANT \(SOON( \d+[mh])?\)\n$/),
    })
    expect(await folder.run(NIGHTLY)).toMatchObject({
      code: 4,
      stdout: '',
      stderr: expect.stringContaining("a schedule 'nightly' exists already"),
    })
  })

  it('list is a table', async () => {
    await run('create', 'poll', '-t', 'poll', '-i', 'null', '--every', '1h30m', '--mode', 'fixed-delay')
    await run('create', 'beat', '-t', 'beat', '-i', 'null', '--every', '30s', '--overlap', 'allow', '--paused')
    const { stdout, stderr } = await run('list')
    expect(stderr).toBe('')
    const lines = stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^ID +TYPE +PLAN +OVERLAP +CATCH-UP +NEXT$/)
    expect(lines[1]).toMatch(/^beat +beat +every 30s +allow +skip +paused$/)
    expect(lines[2]).toMatch(/^nightly +report +30 2 \* \* \* Europe\/Berlin +skip +skip +\S+Z \(in .*\)$/)
    expect(lines[3]).toMatch(/^poll +poll +1h 30m after the end of the last run +skip +skip +\S+Z \(in 1h (29|30)m\)$/)
    expect((await run('list', '--no-color')).stdout).not.toContain('\u001b[')
    expect((await folder.run(['schedule', 'list'], { env: { FORCE_COLOR: '1' } })).stdout).toContain('\u001b[')
    const listed = JSON.parse((await run('list', '--json')).stdout)
    expect(listed.map(({ id }: { id: string }) => id)).toEqual(['beat', 'nightly', 'poll'])
  })

  it('show prints one fact per line', async () => {
    const { stdout } = await run('show', 'nightly')
    expect(normalised(stdout).replaceAll(/SOON \d+\w|AGO|SOON/g, 'THEN')).toBe(
      `id: nightly
incarnation: ID
type: report
plan: 30 2 * * * Europe/Berlin
overlap: skip
catch_up: skip
next_at: INSTANT (THEN)
settled_until: INSTANT (THEN)
last_task_id: none
created_at: INSTANT (THEN)
updated_at: INSTANT (THEN)
options: {"queue":"reports","timeout":"30s","tags":{"team":"a"}}
input: {"day":1}
`,
    )
    expect(JSON.parse((await run('show', 'nightly', '--json')).stdout)).toMatchObject({
      cron: '30 2 * * *',
      timezone: 'Europe/Berlin',
      catchUp: 'skip',
      nextAt: expect.stringMatching(/Z$/),
    })
    expect(await run('show', 'nowhere')).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining("there is no schedule 'nowhere' (SCHEDULE_NOT_FOUND)"),
    })
  })

  it('next prints the next slots', async () => {
    const { stdout } = await run('next', 'nightly')
    expect(stdout.trimEnd().split('\n')).toHaveLength(5)
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\dT0[01]:30:00Z \(in .*\)$/m)
    const slots: string[] = JSON.parse((await run('next', 'nightly', '--count', '3', '--json')).stdout)
    expect(slots).toHaveLength(3)
    expect(await run('next', 'nightly', '--count', 'many')).toMatchObject({ code: 2, stdout: '' })
  })

  it('pause and resume print the new state', async () => {
    expect(await run('pause', 'nightly')).toMatchObject({ code: 0, stdout: 'nightly paused\n' })
    expect((await run('resume', 'nightly')).stdout).toMatch(/^nightly resumed, next_at: \S+Z \(in .*\)\n$/)
    expect(JSON.parse((await run('pause', 'poll', '--json')).stdout)).toMatchObject({ paused: true, nextAt: null })
  })

  it('update changes what is named and nothing else', async () => {
    const { code, stdout } = await run('update', 'nightly', '--every', '5m', '--priority', '3', '-i', '[]')
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^nightly updated, next_at: \S+Z \(in /),
    })
    expect(JSON.parse((await run('show', 'nightly', '--json')).stdout)).toMatchObject({
      cron: null,
      every: 300_000,
      mode: 'fixed-rate',
      input: [],
      options: { queue: 'reports', timeout: '30s', tags: { team: 'a' }, priority: 3 },
    })
    expect(await run('update', 'nightly')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('nothing to change'),
    })
    expect(await run('update', 'nightly', '--cron', '0 0 31 4 *')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("cron '0 0 31 4 *' never comes"),
    })
  })

  it('trigger makes a task and prints its id', async () => {
    const { stdout } = await run('trigger', 'nightly')
    const id = stdout.trim()
    expect(JSON.parse((await folder.run(['status', id, '--json'])).stdout)).toMatchObject({
      scheduleId: 'nightly',
      type: 'report',
      queue: 'reports',
    })
    expect((await folder.run(['status', id])).stdout).toContain('schedule_id: nightly')
    expect((await run('show', 'nightly')).stdout).toContain(`last_task_id: ${id}`)
    expect(JSON.parse((await run('trigger', 'poll', '--json')).stdout)).toMatchObject({ type: 'poll' })
  })

  it('delete ends it', async () => {
    expect(await run('delete', 'nightly')).toMatchObject({ code: 0, stdout: 'nightly deleted\n' })
    expect(JSON.parse((await run('delete', 'poll', '--json')).stdout)).toEqual({ id: 'poll', deleted: true })
    expect(await run('delete', 'nightly')).toMatchObject({ code: 3 })
    await run('delete', 'beat')
    expect(await run('list')).toMatchObject({ code: 0, stdout: '', stderr: 'no schedules\n' })
  })
})

describe('schedule create', () => {
  const folder = makeFolder()

  it.each<[what: string, args: readonly string[], names: RegExp]>([
    ['an impossible date', [...CREATE, '--cron', '0 0 30 2 *'], /cron '0 0 30 2 \*' never comes/],
    ['four fields', [...CREATE, '--cron', '* * * *'], /has 4 fields/],
    ['no plan', CREATE, /cron or every is required/],
    ['two plans', [...CREATE, '--cron', '* * * * *', '--every', '5m'], /cron and every/],
    ['a timezone that is none', [...CREATE, '--cron', '* * * * *', '--timezone', 'Mars'], /timezone 'Mars'/],
    ['a bad overlap', [...CREATE, '--every', '5m', '--overlap', 'queue'], /overlap must be 'skip' or 'allow'/],
    ['no type', ['schedule', 'create', 'x', '-i', '1', '--every', '5m'], /--type is required/],
    ['no id', ['schedule', 'create', '-t', 't', '-i', '1', '--every', '5m'], /missing required argument 'id'/],
    ['a verb that is none', ['schedule', 'creat'], /unknown command 'creat' \(Did you mean create\?\)/],
    ['no verb', ['schedule'], /name a verb/],
  ])('with %s ends with 2 and leaves nothing behind', async (_, args, names) => {
    const { code, stderr } = await folder.run(args)
    expect(code).toBe(2)
    expect(stderr).toMatch(names)
    expect(folder.has('holdfast.db')).toBe(false)
  })
})

describe('the examples in the help', () => {
  const folder = makeFolder()
  const verbs = SCHEDULE_VERBS[0]!.verbs!

  it('stand in the help of every verb', async () => {
    for (const { name, examples } of verbs) {
      const { code, stdout } = await folder.run(['schedule', name, '--help'])
      expect(code).toBe(0)
      for (const example of examples) expect(stdout).toContain(example)
    }
  })

  it('all work, one after the other', async () => {
    for (const example of verbs.flatMap(({ examples }) => examples)) {
      const words = [...example.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!)
      expect({ example, ...(await folder.run(words.slice(1))) }).toMatchObject({ code: 0 })
    }
  })
})

describe('a worker from the shell', () => {
  const folder = makeFolder()

  it('fires what is due', async () => {
    folder.write('tasks.mjs', 'export const beat = () => null')
    await folder.run(['schedule', 'create', 'beat', '-t', 'beat', '-i', '1', '--every', '100ms', '--overlap', 'allow'])
    const worker = folder.start(['worker', './tasks.mjs'])
    const ended = exitOf(worker)
    await linesOf(worker).until(/completed +beat/)
    worker.kill('SIGTERM')
    expect(await ended).toBe(0)
  })

  it('says which slot was skipped because the previous run had not ended, and which run that is', async () => {
    const slow = makeFolder()
    slow.write(
      'tasks.mjs',
      'export const long = (_, { signal }) => new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)))',
    )
    await slow.run(['schedule', 'create', 'long', '-t', 'long', '-i', '1', '--every', '50ms'])
    const worker = slow.start(['worker', './tasks.mjs'])
    const ended = exitOf(worker)
    await slow.withClient(async (client) => {
      await expect
        .poll(async () => (await client.schedules.get('long')).lastSkipped?.reason, { timeout: 20_000 })
        .toBe('overlap')
      const [task] = (await client.list()).tasks
      const [show, why, json] = await Promise.all([
        slow.run(['schedule', 'show', 'long']),
        slow.run(['why', task!.id]),
        slow.run(['why', task!.id, '--json']),
      ])
      expect(normalised(show.stdout)).toContain(
        'why: Its slot at INSTANT (AGO) was skipped: the previous run, task ID, had not ended, and is running now.\n',
      )
      expect(show.stdout).toContain(`the previous run, task ${task!.id},`)
      expect(why.stdout).toMatch(/^ {2}schedule long: Its slot at \S+ \(.*\) was skipped: the previous run, task /m)
      expect(JSON.parse(json.stdout)).toMatchObject({ skippedSlot: { reason: 'overlap', taskId: task!.id } })
    })
    // Two kinds: a signal that is still on its way is not delivered twice, and the first alone gives the handler half a minute.
    worker.kill('SIGTERM')
    worker.kill('SIGINT')
    expect(await ended).toBe(0)
  })
})
