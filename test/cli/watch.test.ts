/** `holdfast worker MODULE --watch`: new code without a restart by hand, and nothing held by the old. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { exitOf, type Folder, linesOf, makeFolder } from './shell.ts'

/** The worker's own process, from the line with which it begins. */
const pidOf = (line: string): number => Number(/\/(\d+)\//.exec(line)![1])

const watching = (folder: Folder, ...args: string[]) => {
  const child = folder.start(['worker', './tasks.mjs', '--watch', ...args])
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stderr!.resume()
  return { child, ended: exitOf(child), lines: linesOf(child) }
}

const submit = async (folder: Folder, type: string): Promise<string> =>
  (await folder.run(['submit', '-t', type, '-i', '1'])).stdout.trim()

describe('a worker that is watched', () => {
  it('restarts when its module or an import changes, and runs the released tasks again', async () => {
    const folder = makeFolder()
    folder.write('answer.mjs', `export const answer = 'old'`)
    folder.write(
      'tasks.mjs',
      `import { answer } from './answer.mjs'
      export const quick = () => { console.log('quick: ' + answer) }
      export const long = (_, { signal }) => new Promise((_, fail) => {
        console.log('long: ' + answer)
        if (answer !== 'old') fail(new Error('enough'))
        signal.addEventListener('abort', () => fail(signal.reason))
      })`,
    )
    const { child, ended, lines } = watching(folder)
    await lines.until(/ serves default /)
    await submit(folder, 'quick')
    await lines.until(/^quick: old$/)
    const long = await submit(folder, 'long')
    await lines.until(/^long: old$/)
    folder.write('answer.mjs', `export const answer = 'new'`)
    await lines.until(/ serves default /)
    await lines.until(/^long: new$/)
    const moves = await folder.withClient(async (client) => (await client.history(long)).map(({ move }) => move))
    expect(moves.slice(0, 4)).toEqual(['submit', 'claim', 'release', 'claim'])
    folder.write('tasks.mjs', `export const quick = () => { console.log('quick: newest') }`)
    await lines.until(/ serves default /)
    await submit(folder, 'quick')
    await lines.until(/^quick: newest$/)
    child.kill('SIGINT')
    expect(await ended).toBe(0)
  })

  it('waits for a change when the module cannot be loaded', async () => {
    const folder = makeFolder()
    folder.write('tasks.mjs', 'export const quick = (')
    const child = folder.start(['worker', './tasks.mjs', '--watch'])
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = exitOf(child)
    let said = ''
    child.stderr!.setEncoding('utf8').on('data', (text) => (said += text))
    await expect.poll(() => said, { timeout: 10_000 }).toContain('waiting for a change')
    expect(said).toContain('cannot be loaded')
    folder.write('tasks.mjs', 'export const quick = () => 1')
    await linesOf(child).until(/ serves default /)
    expect(said).toContain('tasks.mjs has changed; restarting')
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
  })

  it('stops when the watching process is killed', async () => {
    const folder = makeFolder()
    folder.write('tasks.mjs', 'export const quick = () => 1')
    const { child, ended, lines } = watching(folder)
    const pid = pidOf(await lines.until(/ serves default /))
    expect(pid).not.toBe(child.pid)
    child.kill('SIGKILL')
    // Its output is held open by the worker, too: closed means that both are gone.
    await ended
    expect(await folder.withClient((client) => client.workers())).toEqual([])
  })
})

describe('a module with its own worker', () => {
  const own = (folder: Folder): string =>
    folder.write(
      'own.mjs',
      `import { connect } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)}
      const holdfast = await connect('sqlite:./holdfast.db')
      export default holdfast.worker({ queues: ['mail'] }).handle('quick', () => { console.log('ran') })`,
    )

  it('runs as it is', async () => {
    const folder = makeFolder()
    own(folder)
    await folder.run(['submit', '-t', 'quick', '-i', '1', '--queue', 'mail'])
    const { code, stdout } = await folder.run(['worker', './own.mjs', '--drain'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^worker \S+ of \.\/own\.mjs\nran\nworker stopped\n$/)
  })

  it('refuses flags that it decides itself', async () => {
    const folder = makeFolder()
    own(folder)
    const { code, stderr } = await folder.run(['worker', './own.mjs', '--drain', '--queue', 'a'])
    expect(code).toBe(2)
    expect(stderr).toContain('omit --queue')
  })
})
