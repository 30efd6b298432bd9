/** A script that forgot close() ends when its work is done; a worker goes on. */
import { spawn } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { cleanUp, until } from '../crash/processes.ts'
import { freshDatabase, onPostgres } from './setup.ts'

cleanUp()

const HOLDFAST = new URL('../../src/index.ts', import.meta.url).href

const begin = (store: string, work: string) => {
  const text = `
    import { connect, silentLogger } from '${HOLDFAST}'
    const client = await connect('${store}', { create: true, logger: silentLogger })
    ${work}
    console.log('done', Date.now())
    process.on('exit', () => console.log('ended', Date.now()))`
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', text])
  let said = ''
  child.stdout.on('data', (more: Buffer) => {
    said += more.toString()
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const at = (word: string): number => Number(new RegExp(`${word} (\\d+)`).exec(said)?.[1] ?? Number.NaN)
  return { child, at }
}

onPostgres('a script without close()', (url) => {
  test('ends as soon as it has nothing to do, not when the pool is tired of its connections', async () => {
    const { child, at } = begin(await freshDatabase(url), `await client.submit('work', 1); await client.stats()`)
    await until('it has ended', () => child.exitCode !== null)
    // The pool lets go of an idle connection after 10 s.
    expect(at('ended') - at('done')).toBeLessThan(5_000)
  })

  test('that runs a worker goes on when there is nothing to do', async () => {
    const { child, at } = begin(await freshDatabase(url), `client.worker().handle('work', () => 1).start()`)
    await until('it has started', () => at('done') > 0)
    await until('it has had time to end', () => Date.now() - at('done') > 3_000 || child.exitCode !== null)
    expect(child.exitCode).toBeNull()
  })
})
