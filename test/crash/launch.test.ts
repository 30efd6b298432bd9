/** However Node was started, the store opens, and threads and children of ours run: `node -e`, `--watch`, NODE_OPTIONS. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { cleanUp, folder, until } from './processes.ts'

cleanUp()

const HOLDFAST = new URL('../../src/index.ts', import.meta.url).href

/** Runs a plain handler and two isolated ones, and examines the store. */
const programIn = (place: string): string => {
  writeFileSync(join(place, 'double.mjs'), 'export default (n) => 2 * n')
  return `
    const { connect, silentLogger } = await import('${HOLDFAST}')
    const client = await connect('sqlite:${place}/q.db', { logger: silentLogger })
    const ends = await Promise.all([client.submit('plain', 1), client.submit('thread', 2), client.submit('process', 3)])
    const module = '${place}/double.mjs'
    await client.worker()
      .handle('plain', (n) => 2 * n)
      .handle('thread', { module, isolate: 'thread' })
      .handle('process', { module, isolate: 'process' })
      .drain()
    const outputs = await Promise.all(ends.map((task) => client.wait(task)))
    await client.examine()
    console.log('outputs', ...outputs)
    await client.close()`
}

interface Ran {
  readonly stdout: () => string
  readonly stderr: () => string
  readonly child: ChildProcess
}

const run = (args: readonly string[], env: Record<string, string> = {}): Ran => {
  const child = spawn(process.execPath, ['--no-warnings', ...args], { env: { ...process.env, ...env } })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (text: Buffer) => {
    stdout += text.toString()
  })
  child.stderr.on('data', (text: Buffer) => {
    stderr += text.toString()
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { stdout: () => stdout, stderr: () => stderr, child }
}

const expectOutputs = async ({ stdout, stderr, child }: Ran): Promise<void> => {
  await until('it has said its outputs or ended', () => stdout().includes('outputs') || child.exitCode !== null)
  expect(stderr()).not.toMatch(/Error/)
  expect(stdout()).toContain('outputs 2 4 6')
}

test('a program that is text runs: node --input-type=module -e', async () => {
  await expectOutputs(run(['--input-type=module', '-e', programIn(folder())]))
})

test('a program that is text runs: node --input-type=module, with the program on its input', async () => {
  const ran = run(['--input-type=module'])
  ran.child.stdin!.end(programIn(folder()))
  await expectOutputs(ran)
})

test('a program that is text runs: node --input-type module --eval', async () => {
  await expectOutputs(run(['--input-type', 'module', '--eval', programIn(folder())]))
})

test('a program that is text runs: node -p', async () => {
  const place = folder()
  writeFileSync(join(place, 'main.mjs'), programIn(place))
  await expectOutputs(run(['-p', `import('${place}/main.mjs')`]))
})

test('a program that is text runs when NODE_OPTIONS says that it is a module', async () => {
  await expectOutputs(run(['-e', programIn(folder())], { NODE_OPTIONS: '--input-type=module' }))
})

test('a program runs under node --watch, which puts messages of its own among those of threads and children', async () => {
  const place = folder()
  writeFileSync(join(place, 'main.mjs'), programIn(place))
  await expectOutputs(run(['--watch', join(place, 'main.mjs')]))
})

test('a program runs under node --test in its own process', async () => {
  const place = folder()
  writeFileSync(join(place, 'main.test.mjs'), programIn(place))
  await expectOutputs(run(['--test', '--test-isolation=none', join(place, 'main.test.mjs')]))
})
