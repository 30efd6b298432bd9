/** Every example in the help of every verb, run as it stands there. */
import { execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { VERBS, type Verb } from '../../src/cli/program/verbs.ts'
import { PermanentError } from '../../src/index.ts'
import { openWitness } from '../../src/testing/index.ts'
import { exitOf, type Folder, LAUNCHER, linesOf, makeFolder } from './shell.ts'

const ID = '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'

/**
 * Where the others are run: schedules one after the other in schedule.test.ts, the demo in demo.test.ts, moves between two
 * stores with the tests of those verbs, addresses of PostgreSQL in test/postgres/verbs.test.ts.
 */
const ELSEWHERE: ReadonlySet<string> = new Set(['schedule', 'demo', 'move', 'export', 'import', 'serve', 'bench'])

const examplesOf = ({ name, examples, verbs = [] }: Verb): string[] =>
  ELSEWHERE.has(name) ? [] : [...examples, ...verbs.flatMap(examplesOf)]

const isEndless = (line: string): boolean =>
  /\b(tail|monitor|worker \.)/.test(line) && !line.includes('--drain') && !line.includes('|')
const examples = [...new Set(VERBS.flatMap(examplesOf))].filter((line) => !line.includes('postgres://'))

/** What the examples speak of: a task with this id in the state that the verb wants, a module, a file. */
const prepare = async (folder: Folder, line: string): Promise<void> => {
  folder.write('tasks.ts', 'export const work = (input: number) => input')
  folder.write('report.json', '{"month":"2026-01"}')
  if (line.startsWith('holdfast init')) return
  const witness = openWitness(`${folder.path}/witness`)
  await folder.withClient(async (client) => {
    await witness.submit(() => client.submit('work', 1, { id: ID, queue: 'mail', maxRetries: 1 }))
    if (/\b(cancel|why|amend|run-now|expire|signal)\b/.test(line)) return
    if (line.includes('retry ')) return void (await client.cancel(ID))
    const lease = await client.claim(ID, { workerId: 'w', leaseTtl: '1h' })
    if (/\b(replay|purge)\b/.test(line)) return void (await lease.fail(new PermanentError('boom')))
    await lease.complete(1)
    if (line.includes('unarchive')) await client.archive(ID)
  })
}

const typed = (line: string): string =>
  line.replaceAll(/\bholdfast (?=[a-z])/g, `exec '${process.execPath}' '${LAUNCHER}' `).replace(/^(.*\|.*)exec /, '$1')

describe('the examples in the help', () => {
  it.each(examples.filter((line) => !isEndless(line)))('%s', async (line) => {
    const folder = makeFolder()
    await prepare(folder, line)
    const ran = promisify(execFile)('sh', ['-c', typed(line)], { cwd: folder.path })
    // The group of the example is no group of this store, and the command says so.
    if (/^holdfast (replay|purge) .*--group /.test(line)) await expect(ran).rejects.toThrow('GROUP_NOT_FOUND')
    else await expect(ran).resolves.toBeDefined()
  })

  it.each(examples.filter(isEndless))('%s (until it is told to stop)', async (line) => {
    const folder = makeFolder()
    await prepare(folder, line)
    const child = spawn('sh', ['-c', `${typed(line)} 2>&1`], { cwd: folder.path, stdio: 'pipe' })
    const ended = exitOf(child)
    await linesOf(child).until(/^following |^monitoring | serves |"move":"submit"/)
    child.kill('SIGINT')
    expect(await ended).toBe(0)
  })
})
