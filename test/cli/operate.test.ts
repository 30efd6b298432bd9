/** The verbs of whoever runs it at night: dead letters, bulk moves, queues, workers. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Client, SubmitOptions } from '../../src/index.ts'
import { exitOf, type Folder, LAUNCHER, linesOf, makeFolder, normalised } from './shell.ts'

/** Runs a command on a terminal of its own. */
const SCRIPT = '/usr/bin/script'

const die = async (client: Client, type: string, error: Error, options: SubmitOptions = {}): Promise<string> => {
  const { id } = await client.submit(type, { type }, { maxRetries: 0, ...options })
  await (await client.claim(id, { workerId: 'worker-1' })).fail(error)
  return id
}

const withDead = async (folder: Folder): Promise<string[]> =>
  folder.withClient(async (client) => [
    await die(client, 'mail', new Error('user 1 has no address')),
    await die(client, 'mail', new Error('user 22 has no address')),
    await die(client, 'report', new TypeError('no\u001b[31m such "table"'), { queue: 'slow', tags: { team: 'blue' } }),
  ])

const NO_WORKER = 'warning: no worker is live: replayed tasks wait until one starts\n'

describe('dead', () => {
  const folder = makeFolder()

  it('shows the dead letters and their errors', async () => {
    const ids = await withDead(folder)
    const list = await folder.run(['dead'])
    expect(list).toMatchObject({ code: 0, stderr: '' })
    expect(normalised(list.stdout).replaceAll(/ +/g, ' ')).toBe(
      [
        'ID TYPE QUEUE ATTEMPTS DIED ERROR',
        'ID report slow 1 AGO TypeError: no\\u001b[31m such "table"',
        'ID mail default 1 AGO Error: user 22 has no address',
        'ID mail default 1 AGO Error: user 1 has no address',
        '',
      ].join('\n'),
    )
    const groups = await folder.run(['dead', '--groups'])
    expect(
      normalised(groups.stdout)
        .replaceAll(/ +/g, ' ')
        .replaceAll(/^[0-9a-z]{11} /gm, 'GROUP '),
    ).toBe(
      [
        'GROUP COUNT FIRST LAST TYPES ERROR',
        'GROUP 2 INSTANT AGO mail Error: user # has no address',
        'GROUP 1 INSTANT AGO report TypeError: no\\u001b[#m such "…"',
        '',
      ].join('\n'),
    )
    const told = JSON.parse((await folder.run(['dead', '--groups', '--json'])).stdout)
    expect(told).toMatchObject({
      scanned: 3,
      capped: false,
      groups: [{ count: 2, sample: { id: ids[1] } }, { count: 1 }],
    })
    expect(JSON.parse((await folder.run(['dead', '--tag', 'team=blue', '--json'])).stdout).tasks).toMatchObject([
      { id: ids[2] },
    ])
    expect(await folder.run(['dead', '--type', 'none'])).toEqual({ code: 0, stdout: '', stderr: 'no dead letters\n' })
  })
})

describe('a group of dead letters', () => {
  it('is listed by its name, and columns are not cut where they are piped', async () => {
    const folder = makeFolder()
    const long = `no such address ${'x'.repeat(100)}`
    await folder.withClient(async (client) => {
      await die(client, 'mail', new TypeError(`of undefined (reading 'total')`))
      await die(client, 'a-type-with-a-long-name-that-a-terminal-would-not-show', new Error(long))
    })
    const told = JSON.parse((await folder.run(['dead', '--groups', '--json'])).stdout)
    expect(told.groups).toHaveLength(2)
    const { fingerprint } = told.groups.find(({ name }: { name: string }) => name === 'Error')
    const { stdout } = await folder.run(['dead', '--group', fingerprint])
    expect(stdout).toContain(long)
    expect(stdout).toContain('a-type-with-a-long-name-that-a-terminal-would-not-show')
    expect(stdout).not.toContain('reading')
    expect(await folder.run(['dead', '--group', 'nosuch'])).toMatchObject({
      code: 0,
      stderr: 'no dead letters of this group\n',
    })
    for (const verb of ['replay', 'purge'])
      expect(await folder.run([verb, '--group', 'nosuch', '--yes'])).toMatchObject({
        code: 3,
        stderr: expect.stringContaining('no dead letter belongs to group nosuch (GROUP_NOT_FOUND)'),
      })
  })
})

describe('replay', () => {
  const folder = makeFolder()

  it('[L02] of ids prints a result for each, and exits with the worst code', async () => {
    const [one, two] = await withDead(folder)
    const unknown = '00000000-0000-7000-8000-000000000000'
    expect(await folder.run(['replay', one!, unknown])).toEqual({
      code: 3,
      stdout: `${one} pending (replay_count: 1)\n`,
      stderr: `${NO_WORKER}${unknown} error: there is no task ${unknown} (TASK_NOT_FOUND)\n`,
    })
    expect((await folder.run(['replay', one!])).code).toBe(4)
    const { code, stdout } = await folder.run(['replay', two!, '--as-new', '--ttl', '1h'])
    expect(code).toBe(0)
    expect(normalised(stdout)).toBe('ID replayed as ID\n')
    expect((await folder.run(['status', two!])).stdout).toContain(`replayed_as: ${stdout.trim().split(' ').at(-1)}`)
  })

  it('of many prints a plan and requires --yes without a terminal', async () => {
    const many = makeFolder()
    await withDead(many)
    const told = JSON.parse((await many.run(['dead', '--groups', '--json'])).stdout)
    const group = told.groups[0].fingerprint
    const refused = await many.run(['replay', '--group', group])
    expect({ ...refused, stderr: normalised(refused.stderr) }).toEqual({
      code: 2,
      stdout: '',
      stderr: [
        'would replay 2 tasks:',
        '  ID  mail  default  failed  Error: user 1 has no address',
        '  ID  mail  default  failed  Error: user 22 has no address',
        'error: --yes is required to replay 2 tasks without confirmation (INVALID_OPTION)',
        '  Correct the option that the message names; nothing was written.',
        '',
      ].join('\n'),
    })
    const dry = await many.run(['replay', '--all', '--dry-run'])
    expect(dry).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^would replay 3 tasks:\n/) })
    expect(await many.run(['replay', '--group', group, '--yes'])).toEqual({
      code: 0,
      stdout: 'replayed 2 tasks\n',
      stderr: NO_WORKER,
    })
    expect(JSON.parse((await many.run(['replay', '--all', '--yes', '--json'])).stdout)).toMatchObject({
      matched: 1,
      stopped: null,
      results: [{ task: { status: 'pending' } }],
    })
    expect(await many.run(['replay', '--all', '--yes'])).toEqual({ code: 0, stdout: '', stderr: 'no tasks\n' })
  })

  it.each([
    [['replay'], 'name the tasks: ids, or --group, --task-group, --type, --queue, --tag or --all'],
    [['replay', '00000000-0000-7000-8000-000000000000', '--all'], 'not both'],
    [['replay', '--all', '--yes', '--rate', 'fast'], 'rate must be a number greater than 0'],
    [['cancel'], 'name the tasks: ids, or --type, --queue, --group or --tag'],
    [['prune'], '--older-than is required'],
    [['prune', '--older-than', '7d', '--status', 'running'], 'only ended tasks can be removed, not running'],
  ])('%j is bad input', async (args, message) => {
    await withDead(folder)
    const { code, stdout, stderr } = await folder.run(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('behind canaries that fail again exits with 4 and leaves the others alone', async () => {
    const canaries = makeFolder()
    await withDead(canaries)
    const module = canaries.write(
      'tasks.mjs',
      'export default { mail: () => { throw new Error("still") }, report: () => 1 }',
    )
    const worker = canaries.start(['worker', module])
    const ended = exitOf(worker)
    await linesOf(worker).until(/serv|mail/)
    const { code, stdout, stderr } = await canaries.run(['replay', '--type', 'mail', '--canary', '1', '--yes'])
    worker.kill('SIGTERM')
    await ended
    expect({ code, stdout, stderr: normalised(stderr) }).toEqual({
      code: 4,
      stdout: 'replayed 1 task\ncanary: 0 of 1 completed\n',
      stderr:
        'canary ID did not complete: Error: still\nstopped: the canaries did not all complete; the others were left alone\n',
    })
    expect(JSON.parse((await canaries.run(['list', '--status', 'dead', '--json'])).stdout).tasks).toHaveLength(3)
  })
})

describe('purge', () => {
  it('prints a plan and requires --yes, then removes dead letters and nothing else', async () => {
    const folder = makeFolder()
    const [one] = await withDead(folder)
    await folder.withClient((client) => client.submit('mail', 1))
    const refused = await folder.run(['purge', one!])
    expect({ ...refused, stderr: normalised(refused.stderr) }).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^would purge 1 task:\n {2}ID {2}mail .*\nerror: --yes is required to purge 1 task /,
      ),
    })
    expect(await folder.run(['purge', one!, '--yes'])).toEqual({ code: 0, stdout: 'purged 1 task\n', stderr: '' })
    expect((await folder.run(['purge', '--type', 'mail', '--dry-run'])).stdout).toMatch(/^would purge 1 task:\n/)
    expect(JSON.parse((await folder.run(['purge', '--all', '--yes', '--json'])).stdout)).toMatchObject({
      matched: 2,
      stopped: null,
      results: [{ id: expect.any(String) }, { id: expect.any(String) }],
    })
    expect(await folder.run(['purge', '--all', '--yes'])).toMatchObject({ code: 0, stderr: 'no tasks\n' })
    const { tasks } = await folder.withClient((client) => client.list())
    expect(tasks.map(({ status }) => status)).toEqual(['pending'])
    expect((await folder.run(['purge', tasks[0]!.id, '--yes'])).code).toBe(4)
    expect((await folder.run(['purge'])).code).toBe(2)
  })
})

describe('a replay of many', () => {
  it('is stopped by SIGINT, and the same command continues without duplicates', async () => {
    const folder = makeFolder()
    const count = 60
    await folder.withClient(async (client) => {
      for (let i = 0; i < count; i++) await die(client, 'mail', new Error('boom'))
    })
    const replaying = folder.start(['replay', '--all', '--yes', '--rate', '20'])
    const ended = exitOf(replaying)
    await folder.withClient((client) =>
      expect
        .poll(async () => (await client.count({ status: 'pending' })).count, { timeout: 10_000 })
        .toBeGreaterThan(0),
    )
    replaying.kill('SIGINT')
    expect(await ended).toBe(130)
    const left = await folder.withClient(async (client) => (await client.count({ status: 'failed' })).count)
    expect(left).toBeGreaterThan(0)
    expect((await folder.run(['replay', '--all', '--yes'])).stdout).toBe(`replayed ${left} tasks\n`)
    const { tasks } = await folder.withClient((client) => client.list({ limit: 1_000 }))
    expect(tasks.map(({ replayCount }) => replayCount)).toEqual(Array(count).fill(1))
  })

  it('asks on a terminal', async (context) => {
    if (!existsSync(SCRIPT)) return context.skip('there is no script(1) here to make a terminal')
    const folder = makeFolder()
    await withDead(folder)
    const answer = async (word: string): Promise<string> => {
      const command = `'${process.execPath}' '${LAUNCHER}' replay --type mail --no-color`
      const child = spawn(SCRIPT, ['-qec', command, '/dev/null'], { cwd: folder.path, stdio: 'pipe' })
      let said = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        if (!said.includes('[y/N]') && `${said}${text}`.includes('[y/N]')) child.stdin.write(`${word}\n`)
        said += text
      })
      await exitOf(child)
      return normalised(said)
    }
    const no = await answer('n')
    expect(no).toContain('would replay 2 tasks:\r\n  ID  mail  default  failed  Error: user 1 has no address\r\n')
    expect(no).toContain('replay 2 tasks? [y/N]')
    expect(no).toContain('nothing was done')
    const yes = await answer('y')
    expect(yes).toContain('2/2')
    expect(yes).toMatch(/replayed 2 tasks\r\n$/)
  })
})

describe('cancel by filter', () => {
  const folder = makeFolder()

  it('[K01] prints a plan, then cancels what waits and asks what runs to stop', async () => {
    await folder.withClient(async (client) => {
      for (let i = 0; i < 7; i++) await client.submit('mail', i, { tags: { team: 'blue' } })
      const [first] = (await client.list({ order: 'oldest' })).tasks
      await client.claim(first!.id, { workerId: 'worker-1', leaseTtl: '1h' })
      await client.submit('other', 1)
    })
    const dry = await folder.run(['cancel', '--type', 'mail', '--dry-run'])
    expect(normalised(dry.stdout)).toBe(
      ['would cancel 7 tasks:', ...Array(5).fill('  ID  mail  default  pending'), '  … and 2 more', ''].join('\n'),
    )
    expect((await folder.run(['cancel', '--tag', 'team=blue'])).code).toBe(2)
    expect(await folder.run(['cancel', '--tag', 'team=blue', '--yes', '--reason', 'no more'])).toEqual({
      code: 0,
      stdout: 'cancelled 6 tasks, asked 1 to stop\n',
      stderr: '',
    })
    expect(JSON.parse((await folder.run(['list', '--status', 'pending', '--json'])).stdout).tasks).toMatchObject([
      { type: 'other' },
    ])
  })
})

describe('cancel of a task that runs in another process', () => {
  it('[K01][K02] reaches its handler within one heartbeat', async () => {
    const folder = makeFolder()
    const module = folder.write(
      'tasks.mjs',
      `export const long = (_, { signal }) => new Promise((_, reject) => {
        console.log('begun')
        signal.addEventListener('abort', () => { console.log('told: ' + signal.reason.kind); reject(signal.reason) })
      })`,
    )
    const { stdout } = await folder.run(['submit', '-t', 'long', '-i', '1'])
    const id = stdout.trim()
    const worker = folder.start(['worker', module])
    const ended = exitOf(worker)
    const lines = linesOf(worker)
    await lines.until(/^begun$/)
    expect((await folder.run(['cancel', id])).stdout).toMatch(/asked to stop/)
    await lines.until(/^told: cancelled$/)
    const task = await folder.withClient((client) => client.waitForEnd(id))
    worker.kill('SIGTERM')
    await ended
    expect(task.status).toBe('cancelled')
    const asked = task.history.find(({ move }) => move === 'request-cancel')!.at
    // A third of the lease of 5 s, and what a busy machine needs to write it down.
    expect(task.completedAt! - asked).toBeLessThan(5_000 / 3 + 1_000)
  })
})

describe('amend, run-now', () => {
  const folder = makeFolder()

  it('change a task that waits, and leave a running one as it is', async () => {
    const { id } = await folder.withClient((client) => client.submit('work', { n: 1 }, { delay: '1d' }))
    expect((await folder.run(['amend', id, '-i', '{"n":2}', '--priority', '4', '--ttl', '2d'])).stdout).toMatch(
      `${id} pending (priority: 4, available_at: `,
    )
    expect((await folder.run(['run-now', id])).stdout).toBe(`${id} pending (due now)\n`)
    expect((await folder.run(['amend', id, '--priority', 'high'])).stderr).toContain('priority must be a whole number')
    const lease = await folder.withClient((client) => client.claimNext({ workerId: 'w', leaseTtl: '1h' }))
    expect(lease?.task.input).toEqual({ n: 2 })
    expect(await folder.run(['amend', id, '--priority', '5'])).toMatchObject({ code: 4, stdout: '' })
    const history = (await folder.run(['history', id])).stdout
    expect(history).toMatch(/Version 2: pending \(priority, expiresAt, input changed by .+, expires_at: /)
    expect(history).toMatch(/Version 3: pending \(availableAt changed by /)
  })
})

describe('archive, unarchive, delete, prune', () => {
  const folder = makeFolder()

  it('hide, restore and remove ended tasks', async () => {
    const [id] = await withDead(folder)
    expect((await folder.run(['archive', id!])).stdout).toBe(`${id} archived (was failed)\n`)
    expect((await folder.run(['unarchive', id!])).stdout).toBe(`${id} failed\n`)
    expect((await folder.run(['unarchive', id!])).code).toBe(4)
    expect((await folder.run(['delete', id!])).stdout).toBe(`${id} deleted (was failed)\n`)
    expect((await folder.run(['delete', id!])).code).toBe(3)
  })

  it('prune removes only what it says in its plan', async () => {
    await folder.withClient((client) => client.submit('waiting', 1))
    expect(await folder.run(['prune', '--older-than', '7d', '--yes'])).toMatchObject({ code: 0, stderr: 'no tasks\n' })
    expect((await folder.run(['prune', '--older-than', '0', '--queue', 'slow', '--dry-run'])).stdout).toMatch(
      /^would remove 1 task:\n/,
    )
    expect((await folder.run(['prune', '--older-than', '0'])).code).toBe(2)
    expect(await folder.run(['prune', '--older-than', '0', '--status', 'dead', '--yes'])).toEqual({
      code: 0,
      stdout: 'removed 2 tasks\n',
      stderr: '',
    })
    expect(JSON.parse((await folder.run(['list', '--json'])).stdout).tasks).toMatchObject([{ type: 'waiting' }])
  })
})

describe('pause, resume and workers', () => {
  const folder = makeFolder()

  it('pause and resume print a result for each queue', async () => {
    await folder.withClient((client) => client.submit('mail', 1, { queue: 'mail' }))
    expect((await folder.run(['pause', 'mail', 'slow', '--reason', 'repairs'])).stdout).toBe(
      'mail paused\nslow paused\n',
    )
    expect((await folder.run(['stats'])).stdout).toContain('mail (paused)')
    expect(JSON.parse((await folder.run(['resume', 'mail', '--json'])).stdout)).toEqual([
      { queue: 'mail', paused: false },
    ])
    expect((await folder.run(['pause', 'not a name'])).code).toBe(2)
  })

  it('workers lists live workers, and why says when there are none', async () => {
    const [task] = await folder.withClient(async (client) => (await client.list()).tasks)
    expect((await folder.run(['why', task!.id])).stdout).toMatch(/but no live worker is registered\.$/m)
    expect(await folder.run(['workers'])).toEqual({ code: 0, stdout: '', stderr: 'no live workers\n' })
    const shown = await folder.withClient(async (client) => {
      const worker = client
        .worker({ id: 'w1', queues: ['default', 'mail'], concurrency: 3 })
        .handle('other', () => {})
        .start()
      await expect.poll(async () => (await client.workers()).length).toBe(1)
      const [table, json, why] = await Promise.all([
        folder.run(['workers']),
        folder.run(['workers', '--json']),
        folder.run(['why', task!.id]),
      ])
      await worker.stop()
      return { table, json, why }
    })
    expect(
      normalised(shown.table.stdout)
        .replaceAll(/ +/g, ' ')
        .replace(/\d+\.\d+\.\d+/, 'VERSION'),
    ).toBe('ID QUEUES TYPES CONCURRENCY STUCK VERSION STARTED BEAT\nw1 default,mail other 3 0 VERSION AGO AGO\n')
    expect(JSON.parse(shown.json.stdout)).toMatchObject([{ id: 'w1', pid: process.pid, beatAt: expect.any(String) }])
    expect(shown.why.stdout).toContain("but no live worker handles 'mail' (1 registered).")
    expect(await folder.run(['workers'])).toMatchObject({ stderr: 'no live workers\n' })
  })
})
