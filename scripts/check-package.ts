/**
 * Checks the package as users get it (package/, see package.ts): its size and links, publint and attw; installs it in an empty folder, and uses
 * it from there. With --release, what only the owner of the package can fill in must be there too.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { relativeLinks } from './links.ts'
import { snippetsOf } from './markdown.ts'

const run = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** The first program that a newcomer runs has the name that the README gives it, in a package as `npm init` makes it. */
const placeOf = (page: string): { readonly file: string; readonly type: string } => {
  if (page !== 'README.md') return { file: 'main.ts', type: 'module' }
  const [, file] = /^Save it as `(\S+)`, run `node \1`/m.exec(readFileSync(join(root, page), 'utf8')) ?? []
  if (file === undefined) throw new Error('README.md does not say how to run its first snippet')
  return { file, type: 'commonjs' }
}

/** Runs the runnable snippets of the pages as printed: each ends by itself, and prints what the comments of its `console.log` lines say. */
const runSnippets = (project: string): void => {
  const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: root }).sort()]
  const snippets = pages.flatMap((page) =>
    snippetsOf(readFileSync(join(root, page), 'utf8')).map((snippet) => ({ page, snippet })),
  )
  if (snippets[0]?.page !== 'README.md') throw new Error('README.md has no runnable snippet')
  for (const [n, { page, snippet }] of snippets.entries()) {
    const place = join(project, `snippet-${n}`)
    mkdirSync(place)
    const { file, type } = placeOf(page)
    writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true, type }))
    writeFileSync(join(place, file), snippet)
    const said = run(process.execPath, [file], place)
    const promised = [...snippet.matchAll(/^console\.log\(.*\/\/ (.*)$/gm)].map(([, text]) => `${text}\n`).join('')
    if (promised === '' || said !== promised) throw new Error(`the snippet of ${page} said ${said}:\n${snippet}`)
  }
}

/** Node shows the line of an uncaught error: it must not bury the message. */
const checkUncaughtError = (project: string): void => {
  writeFileSync(join(project, 'wrong.js'), `import { connect } from 'holdfast'; await connect('')`)
  const { stderr } = spawnSync(process.execPath, ['wrong.js'], { cwd: project, encoding: 'utf8' })
  if (!stderr.includes('the address is empty') || stderr.length > 2_500)
    throw new Error(`an uncaught error prints ${stderr.length} characters:\n${stderr.slice(0, 2_500)}`)
}

/** Type-checks every entry of the package in a strict application without any driver, including the types of libraries: with the types of Node and without. */
const checkTypes = (project: string): void => {
  const { exports, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = Object.keys(exports).filter((name) => !name.endsWith('.json'))
  const lines = entries.map((name, n) => `export * as e${n} from '${name.replace('.', 'holdfast')}'`)
  writeFileSync(join(project, 'types.ts'), lines.join('\n'))
  const types = `@types/node@${devDependencies['@types/node']}`
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false', '--target', 'es2024']
  const check = ['--noEmit', '--module', 'nodenext', ...strict, 'types.ts']
  run('tsc', check, project)
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', types], project)
  run('tsc', [...check, '--types', 'node'], project)
}

/** The unpacked size. */
const LARGEST = 1_500_000

const checkSize = (): void => {
  const [{ unpackedSize }] = JSON.parse(run('npm', ['pack', '--dry-run', '--json'], published)) as [
    { readonly unpackedSize: number },
  ]
  console.log(`      ${(unpackedSize / 1e6).toFixed(2)} MB unpacked`)
  if (unpackedSize >= LARGEST) throw new Error(`the package is ${unpackedSize} bytes unpacked, the limit is ${LARGEST}`)
}

const checkLinks = (): void => {
  for (const page of globSync('*.md', { cwd: published }))
    for (const file of relativeLinks(readFileSync(join(published, page), 'utf8')))
      if (!existsSync(join(published, file)))
        throw new Error(`${page} in the package links to ${file}, which is not in it`)
}

/** They name a place that belongs to the owner of the package. */
const checkOwner = (): void => {
  const manifest = JSON.parse(readFileSync(join(published, 'package.json'), 'utf8'))
  const missing = ['repository', 'bugs', 'homepage'].filter((name) => manifest[name] === undefined)
  if (missing.length === 0) return
  const what = `package.json has no ${missing.join(', ')}: the owner must fill them in before a release`
  if (process.argv.includes('--release')) throw new Error(what)
  console.log(`note  ${what}`)
}

const root = join(import.meta.dirname, '..')
const published = join(root, 'package')
const folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'))
try {
  checkOwner()
  checkSize()
  checkLinks()
  run('npm', ['pack', '--silent', '--pack-destination', folder], published)
  const tarball = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz'))!)
  run('publint', ['--strict', '--pack', 'npm', published], root)
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
  checkUncaughtError(folder)
  runSnippets(folder)
  const version = run(process.execPath, ['node_modules/holdfast/bin/holdfast.js', '--version'], folder).trim()
  console.log(`ok    packed, checked, installed and used (holdfast ${version})`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
