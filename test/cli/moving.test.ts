/** The verbs that bring tasks from one place to another, as a user types them. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MOVING_VERBS } from '../../src/cli/program/transfer-verbs.ts'
import { connect, silentLogger } from '../../src/index.ts'
import { exitOf, LAUNCHER, linesOf, makeFolder } from './shell.ts'

/** Runs a command on a terminal of its own. */
const SCRIPT = '/usr/bin/script'

const submitted = async (folder: ReturnType<typeof makeFolder>, count: number): Promise<void> =>
  folder.withClient(async (client) => {
    await client.submitMany(
      Array.from({ length: count }, (_, n) => ({ type: 'work', input: n, idempotencyKey: `k${n}` })),
    )
  })

describe('export and import', () => {
  const folder = makeFolder()
  const file = (): string => join(folder.path, 'backup.jsonl')

  it('write a complete file and import it; a repeat duplicates nothing', async () => {
    await submitted(folder, 3)
    await folder.run(['schedule', 'create', 'nightly', '-t', 'work', '-i', '1', '--cron', '0 3 * * *'])
    await folder.run(['pause', 'default'])
    expect(await folder.run(['export', '--output', 'backup.jsonl'])).toMatchObject({
      code: 0,
      stdout: 'exported 3 tasks to backup.jsonl\n',
    })
    expect(existsSync(`${file()}.part`)).toBe(false)
    const lines = readFileSync(file(), 'utf8').trim().split('\n')
    expect(JSON.parse(lines[0]!)).toMatchObject({ holdfast: 'export', version: 1 })
    expect(JSON.parse(lines.at(-1)!)).toEqual({ end: { queues: 1, pauses: 1, tasks: 3, keys: 0, schedules: 1 } })
    const there = ['--url', 'sqlite:./other.db']
    expect((await folder.run(['import', 'backup.jsonl', ...there])).stdout).toBe(
      'imported 3 tasks\nschedules: 1, pauses: 1\n',
    )
    expect((await folder.run(['import', 'backup.jsonl', ...there])).stdout).toBe(
      'imported 0 tasks; 3 tasks of the file already existed\n',
    )
    const { stdout } = await folder.run(['import', 'backup.jsonl', '--json', ...there])
    expect(JSON.parse(stdout)).toMatchObject({ tasks: 0, there: 3, schedules: 0, stopped: null })
  })

  it('go through a pipe, too, and take a filter', async () => {
    const all = await folder.run(['export'])
    expect(all).toMatchObject({ code: 0, stderr: '' })
    const piped = await folder.run(['import', '-', '--url', 'sqlite:./piped.db'], { input: all.stdout })
    expect(piped.stdout).toMatch(/^imported 3 tasks\n/)
    const none = await folder.run(['export', '--status', 'dead', '--output', 'dead.jsonl', '--json'])
    expect(JSON.parse(none.stdout)).toMatchObject({ output: 'dead.jsonl', tasks: 0, schedules: 0 })
  })

  it('refuse a file that is cut short, another file, and no file, and write nothing', async () => {
    const cut = readFileSync(file(), 'utf8').trim().split('\n').slice(0, -1).join('\n')
    writeFileSync(join(folder.path, 'cut.jsonl'), cut)
    folder.write('other.csv', 'id,type\n1,work\n')
    const there = ['--url', 'sqlite:./empty.db']
    expect(await folder.run(['import', 'cut.jsonl', ...there])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/cut short after line \d+.*INVALID_EXPORT/),
    })
    expect((await folder.run(['import', 'other.csv', ...there])).stderr).toContain('line 1')
    expect((await folder.run(['import', 'missing.jsonl', ...there])).code).toBe(2)
    expect((await folder.run(['export', '--output', 'no/such/folder.jsonl'])).code).toBe(2)
    expect((await folder.run(['list', ...there])).stderr).toContain('no tasks')
  })
})

describe('move', () => {
  const folder = makeFolder()

  it('moves everything, says so, and finds nothing more the second time', async () => {
    await submitted(folder, 3)
    const first = await folder.run(['move', folder.url, 'sqlite:./new.db'])
    expect(first.code).toBe(0)
    expect(first.stdout).toMatch(/^moved 3 tasks from sqlite:.*holdfast\.db to sqlite:.*new\.db\n$/)
    const second = await folder.run(['move', folder.url, 'sqlite:./new.db', '--json'])
    expect(JSON.parse(second.stdout)).toMatchObject({ moved: 0, conflicts: [], stopped: null })
    expect((await folder.run(['list', '--url', 'sqlite:./new.db'])).stdout.match(/ready/g)).toHaveLength(3)
    const { stdout } = await folder.run(['list', '--status', 'archived', '--json'])
    const [{ id, tags }] = JSON.parse(stdout).tasks
    expect(tags.moved).toMatch(/new\.db$/)
    expect((await folder.run(['history', id])).stdout).toMatch(/^Version 2: archived \(moved to sqlite:.*new\.db by /m)
    expect((await folder.run(['why', id])).stdout).toMatch(/moved to sqlite:.*new\.db/)
    expect(await folder.run(['unarchive', id])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('lives there'),
    })
  })

  it('refuses while workers are live, unless --live is given', async () => {
    const other = makeFolder()
    await submitted(other, 2)
    other.write('tasks.mjs', 'export const nothing = () => {}')
    const worker = other.start(['worker', './tasks.mjs'])
    onTestFinished(() => void worker.kill('SIGKILL'))
    const looker = await connect(other.url, { logger: silentLogger })
    onTestFinished(() => looker.close())
    await expect.poll(async () => (await looker.workers()).length).toBe(1)
    expect(await other.run(['move', other.url, 'sqlite:./new.db'])).toMatchObject({
      code: 4,
      stdout: '',
      stderr: expect.stringContaining('WORKERS_LIVE'),
    })
    expect((await other.run(['move', other.url, 'sqlite:./new.db', '--live'])).stdout).toMatch(/^moved 2 tasks/)
    worker.kill('SIGTERM')
    expect(await exitOf(worker)).toBe(0)
  })

  it('waits for running tasks, stops at SIGINT with the new store paused, and continues when it is run again', async () => {
    const other = makeFolder()
    await submitted(other, 2)
    const looker = await connect(other.url, { logger: silentLogger })
    onTestFinished(() => looker.close())
    const lease = await looker.claimNext({ workerId: 'by hand', leaseTtl: '1h' })
    const moving = other.start(['move', other.url, 'sqlite:./new.db'])
    onTestFinished(() => void moving.kill('SIGKILL'))
    const waits = new Promise<void>((done) =>
      moving.stderr!.on('data', (text) => String(text).includes('waiting for 1 task') && done()),
    )
    await waits
    moving.kill('SIGINT')
    expect(await linesOf(moving).until(/^moved/)).toMatch(/^moved 1 task from/)
    expect(await exitOf(moving)).toBe(130)
    const there = ['--url', 'sqlite:./new.db']
    expect(await other.run(['resume', 'default', ...there])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('MOVE_UNDER_WAY'),
    })
    await lease!.complete('done')
    expect((await other.run(['move', other.url, 'sqlite:./new.db'])).stdout).toMatch(/^moved 1 task from/)
    expect((await other.run(['stats', '--json', ...there])).stdout).toContain('"paused": false')
    expect((await other.run(['resume', 'default', '--force', ...there])).code).toBe(0)
  })

  it('names both stores, and a typo creates neither', async () => {
    expect((await folder.run(['move', folder.url])).code).toBe(2)
    expect((await folder.run(['move', 'sqlite:./typo.db', 'sqlite:./new.db'])).code).toBe(5)
    expect((await folder.run(['move', folder.url, 'sqlite:./x.db', '--url', 'sqlite:./y.db'])).code).toBe(2)
    expect((await folder.run(['move', folder.url, folder.url])).stderr).toContain('cannot be moved to itself')
  })

  it('has a progress bar on a terminal', async (context) => {
    if (!existsSync(SCRIPT)) return context.skip('there is no script(1) here to make a terminal')
    const other = makeFolder()
    await submitted(other, 600)
    const line = `${process.execPath} ${LAUNCHER} move ${other.url} sqlite:${other.path}/new.db`
    const { stdout } = await promisify(execFile)(SCRIPT, ['-qec', line, '/dev/null'], { cwd: other.path })
    expect(stdout).toMatch(/█+.* \d+\/600/)
    expect(stdout).toContain('moved 600 tasks')
  })
})

describe('the examples in the help', () => {
  it.each(MOVING_VERBS.flatMap(({ examples }) => examples).filter((line) => !line.includes('postgres:')))(
    '%s',
    async (line) => {
      const folder = makeFolder()
      await submitted(folder, 1)
      for (const name of ['a', 'b']) await folder.run(['init', `sqlite:./${name}.db`])
      if (line.includes('import backup')) await folder.run(['export', '--output', 'backup.jsonl'])
      const typed = line.replaceAll('holdfast ', `${process.execPath} ${LAUNCHER} `)
      const { stderr } = await promisify(execFile)('/bin/sh', ['-c', typed], { cwd: folder.path })
      expect(stderr).toBe('')
    },
  )
})
