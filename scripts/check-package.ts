/** Checks the package as users get it: packs it, runs publint and attw, installs it in an empty folder, and uses it from there. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { snippetsOf } from './snippets.ts'

const run = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** Runs the README's runnable snippets as printed, each in a separate folder next to the installed package. */
const runSnippets = async (project: string): Promise<void> => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', `zod@${devDependencies.zod}`], project)
  const snippets = snippetsOf(readFileSync(join(root, 'README.md'), 'utf8'))
  if (snippets.length === 0) throw new Error('README.md has no runnable snippet')
  for (const [n, snippet] of snippets.entries()) {
    const place = join(project, `snippet-${n}`)
    mkdirSync(place)
    writeFileSync(join(place, 'package.json'), '{ "private": true, "type": "module" }')
    writeFileSync(join(place, 'main.ts'), snippet)
    await runUntilTried(place)
  }
}

/** Type-checks every entry of the package in a strict application without any driver, including the types of libraries. */
const checkTypes = (project: string): void => {
  const { exports, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = Object.keys(exports).filter((name) => !name.endsWith('.json'))
  const lines = entries.map((name, n) => `export * as e${n} from '${name.replace('.', 'holdfast')}'`)
  writeFileSync(join(project, 'types.ts'), lines.join('\n'))
  const types = `@types/node@${devDependencies['@types/node']}`
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', types], project)
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false', '--types', 'node']
  run('tsc', ['--noEmit', '--module', 'nodenext', '--target', 'es2024', ...strict, 'types.ts'], project)
}

const PATIENCE = 120_000

/** Waits until a task has run, with whatever result the network allows; then SIGTERM must end it cleanly. */
const runUntilTried = async (place: string): Promise<void> => {
  const child = spawn(process.execPath, ['main.ts'], { cwd: place, stdio: 'inherit' })
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  const holdfast = join(place, '../node_modules/holdfast/bin/holdfast.js')
  const until = Date.now() + PATIENCE
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the snippet in ${place} ended by itself with ${child.exitCode}`)
    if (Date.now() > until) {
      child.kill('SIGKILL')
      throw new Error(`the snippet in ${place} ran no task within ${PATIENCE} ms`)
    }
    const listed = spawnSync(process.execPath, [holdfast, 'list', '--json'], { cwd: place, encoding: 'utf8' })
    const tasks = listed.status === 0 ? JSON.parse(listed.stdout).tasks : []
    const isTried = tasks.some(
      (task: { status: string; lastError: unknown }) => task.status === 'completed' || task.lastError !== null,
    )
    if (isTried) break
    await new Promise((done) => setTimeout(done, 200))
  }
  child.kill('SIGTERM')
  const code = await ended
  if (code !== 0) throw new Error(`the snippet in ${place} ended with ${code} after SIGTERM`)
}

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'))
try {
  run('npm', ['pack', '--silent', '--pack-destination', folder], root)
  const tarball = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz'))!)
  run('publint', ['--strict', '--pack', 'npm', root], root)
  run('attw', ['--profile', 'esm-only', '--quiet', tarball], root)
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', tarball], folder)
  const program = `
    import { connect } from 'holdfast'
    import { createHttpHandler, everybody } from 'holdfast/http'
    import { createMetrics } from 'holdfast/metrics'
    import { FakeClock } from 'holdfast/testing'
    const holdfast = await connect('sqlite:./q.db')
    const task = await holdfast.submit('add', { a: 1, b: 2 })
    await holdfast.worker().handle('add', ({ a, b }) => a + b).drain()
    const missing = await connect('postgres://localhost/app').catch(({ code }) => code)
    const handler = createHttpHandler(holdfast, { authorize: everybody })
    const { status } = await handler.fetch(new Request('http://localhost/api/v1/tasks/' + task.id))
    const { text } = await createMetrics(holdfast).text()
    console.log(await holdfast.wait(task), typeof FakeClock, missing, status, text.includes('view="completed"} 1'))
    await holdfast.close()`
  writeFileSync(join(folder, 'main.js'), program)
  const said = run(process.execPath, ['main.js'], folder).trim()
  if (said !== '3 function DRIVER_MISSING 200 true') throw new Error(`the installed package said ${said}`)
  if (!existsSync(join(folder, 'node_modules/holdfast/dist/dashboard/index.html')))
    throw new Error('no dashboard came along')
  checkTypes(folder)
  await runSnippets(folder)
  const version = run(process.execPath, ['node_modules/holdfast/bin/holdfast.js', '--version'], folder).trim()
  console.log(`ok    packed, checked, installed and used (holdfast ${version})`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
