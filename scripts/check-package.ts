/** The package as users get it: packed, checked by publint and attw, installed in an empty folder, and used from there. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const run = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

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
    import { createDoor, everybody } from 'holdfast/http'
    import { createMetrics } from 'holdfast/metrics'
    import { FakeClock } from 'holdfast/testing'
    const holdfast = await connect('sqlite:./q.db')
    const task = await holdfast.submit('add', { a: 1, b: 2 })
    await holdfast.worker().handle('add', ({ a, b }) => a + b).drain()
    const missing = await connect('postgres://localhost/app').catch(({ code }) => code)
    const door = createDoor(holdfast, { authorize: everybody })
    const { status } = await door.fetch(new Request('http://localhost/api/v1/tasks/' + task.id))
    const { text } = await createMetrics(holdfast).text()
    console.log(await holdfast.wait(task), typeof FakeClock, missing, status, text.includes('view="completed"} 1'))
    await holdfast.close()`
  writeFileSync(join(folder, 'main.js'), program)
  const said = run(process.execPath, ['main.js'], folder).trim()
  if (said !== '3 function DRIVER_MISSING 200 true') throw new Error(`the installed package said ${said}`)
  if (!existsSync(join(folder, 'node_modules/holdfast/dist/dashboard/index.html')))
    throw new Error('no dashboard came along')
  const version = run(process.execPath, ['node_modules/holdfast/bin/holdfast.js', '--version'], folder).trim()
  console.log(`ok    packed, checked, installed and used (holdfast ${version})`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
