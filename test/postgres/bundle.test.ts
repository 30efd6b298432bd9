/**
 * A program that a bundler has put into one file, from the packed package: it runs where nothing else is. Beside PostgreSQL, so
 * that the lease thread's warning is seen on a real server. dist must be built.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build as esbuild } from 'esbuild'
import { rolldown } from 'rolldown'
import { build as vite } from 'vite'
import { beforeAll, expect, test } from 'vitest'
import webpack from 'webpack'
import { cleanUp, folder } from '../crash/processes.ts'
import { freshDatabase, onPostgres } from './setup.ts'

cleanUp()

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const { dependencies } = (await import('../../package.json', { with: { type: 'json' } })).default

/** Submits a task and runs it; `examine` looks at the store. */
const PROGRAM = `
  import { connect } from 'holdfast'
  const main = async () => {
    const client = await connect(process.env.STORE, { create: true })
    const task = await client.submit('add', { a: 1, b: 2 })
    await client.worker().handle('add', ({ a, b }) => a + b).drain()
    const facts = await client.examine()
    console.log('sum', await client.wait(task), facts.length > 0)
    await client.close()
  }
  main().catch((error) => {
    console.error(error.code, error.message)
    process.exitCode = 1
  })`

let project = ''

/** An application with the packed package, as npm would install it, and none of the drivers. */
const withPackage = async (...drivers: string[]): Promise<string> => {
  const app = folder()
  const modules = join(app, 'node_modules')
  mkdirSync(modules)
  cpSync(join(project, 'package'), join(modules, 'holdfast'), { recursive: true })
  for (const name of [...Object.keys(dependencies), ...drivers]) {
    if (name.startsWith('@')) mkdirSync(join(modules, name.split('/')[0]!), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }')
  writeFileSync(join(app, 'main.js'), PROGRAM)
  return app
}

/** In a folder where there is nothing but the bundle, or the folder that it is in. */
const runAlone = async (bundle: string, store: string, { withItsFolder = false } = {}) => {
  const place = folder()
  const name = bundle.split('/').at(-1)!
  if (withItsFolder) cpSync(join(bundle, '..'), place, { recursive: true })
  else cpSync(bundle, join(place, name))
  const options = { cwd: place, env: { ...process.env, STORE: store } }
  return run(process.execPath, [name], options).catch((error: { stdout: string; stderr: string }) => error)
}

beforeAll(async () => {
  project = folder()
  await run('npm', ['pack', '--silent', '--pack-destination', project], { cwd: root })
  const tarball = readdirSync(project).find((name) => name.endsWith('.tgz'))!
  await run('tar', ['-xzf', tarball], { cwd: project })
})

const FORMATS = ['esm', 'cjs'] as const

const bundled = async (app: string, format: (typeof FORMATS)[number]): Promise<string> => {
  const outfile = join(app, format === 'esm' ? 'bundle.mjs' : 'bundle.cjs')
  const made = await esbuild({
    ...{ absWorkingDir: app, entryPoints: ['main.js'], bundle: true, platform: 'node', format, outfile },
    logLevel: 'silent',
    // As its manual says for packages that require: pg does.
    ...(format === 'esm' ? { banner: { js: REQUIRE } } : null),
  })
  expect(made.errors).toEqual([])
  return outfile
}

const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

test.each(FORMATS)(
  'esbuild, %s: without any driver it builds, and runs on sqlite: with nothing beside it',
  async (format) => {
    const bundle = await bundled(await withPackage(), format)
    const { stdout, stderr } = await runAlone(bundle, 'sqlite:./q.db')
    expect(stderr).toMatch(/^holdfast info: created a store at sqlite:.*q\.db\n$/)
    expect(stdout).toBe('sum 3 true\n')
    expect((await runAlone(bundle, 'postgres://localhost/x')).stderr).toMatch(/^DRIVER_MISSING .*npm install pg/)
    expect((await runAlone(bundle, 'nats://localhost/x')).stderr).toMatch(/^DRIVER_MISSING .*npm install @nats-io/)
    expect((await runAlone(bundle, 's3://bucket')).stderr).toMatch(/^DRIVER_MISSING .*npm install @aws-sdk/)
  },
)

onPostgres('on PostgreSQL', (url) => {
  test.each(FORMATS)(
    'esbuild, %s: it runs, and a warning says that there is no lease thread and how to have it',
    async (format) => {
      const bundle = await bundled(await withPackage('pg'), format)
      const { stdout, stderr } = await runAlone(bundle, await freshDatabase(url))
      expect(stdout).toBe('sum 3 true\n')
      expect(stderr).toMatch(/leases are renewed on the event loop, .*esbuild --external:holdfast/)
    },
  )

  test('esbuild with holdfast external, as the warning says: no warning, the lease thread is there', async () => {
    const app = await withPackage('pg')
    const outfile = join(app, 'bundle.mjs')
    const entry = { absWorkingDir: app, entryPoints: ['main.js'], outfile }
    await esbuild({ ...entry, bundle: true, platform: 'node', format: 'esm', external: ['holdfast'] })
    const env = { ...process.env, STORE: await freshDatabase(url) }
    const { stdout, stderr } = await run(process.execPath, ['bundle.mjs'], { cwd: app, env })
    expect(stdout).toBe('sum 3 true\n')
    expect(stderr).not.toMatch(/renewed on the event loop/)
  })
})

test('rolldown (and Rollup, whose settings it has): without any driver it builds, and runs on sqlite:', async () => {
  const app = await withPackage()
  const bundle = await rolldown({ cwd: app, input: 'main.js', platform: 'node', logLevel: 'silent' })
  await bundle.write({ file: join(app, 'bundle.mjs'), format: 'esm', codeSplitting: false })
  await bundle.close()
  expect(await runAlone(join(app, 'bundle.mjs'), 'sqlite:./q.db')).toMatchObject({ stdout: 'sum 3 true\n' })
})

test('Vite for a server leaves packages out by default; with everything inside it runs on sqlite:, too', async () => {
  const app = await withPackage()
  const settings = { root: app, configFile: false, logLevel: 'silent' } as const
  const output = { entryFileNames: '[name].mjs', codeSplitting: false }
  const build = { ssr: 'main.js', outDir: 'whole', rollupOptions: { output } }
  await vite({ ...settings, build: { ssr: 'main.js' } })
  const env = { ...process.env, STORE: 'sqlite:./q.db' }
  expect((await run(process.execPath, ['dist/main.js'], { cwd: app, env })).stdout).toBe('sum 3 true\n')
  await vite({ ...settings, build, ssr: { noExternal: true } })
  expect(await runAlone(join(app, 'whole/main.mjs'), 'sqlite:./q.db')).toMatchObject({ stdout: 'sum 3 true\n' })
})

/** webpack writes several files: one for each dynamic import. They are moved as they would be deployed, and the sources deleted. */
const byWebpack = async (app: string, format: 'esm' | 'cjs', settings: webpack.Configuration = {}): Promise<string> => {
  const path = join(app, 'out')
  const name = format === 'esm' ? 'bundle.mjs' : 'bundle.cjs'
  const output = { path, filename: name, ...(format === 'esm' ? { module: true, chunkFormat: 'module' } : null) }
  const configuration: webpack.Configuration = {
    ...{ context: app, entry: './main.js', mode: 'production', target: 'node', output, ...settings },
    experiments: { outputModule: format === 'esm' },
    optimization: { minimize: false },
  }
  const made = await new Promise<webpack.Stats>((done, failed) => {
    webpack(configuration, (error, stats) => (stats === undefined ? failed(error) : done(stats)))
  })
  expect(made.toJson({ all: false, errors: true }).errors).toEqual([])
  return join(path, name)
}

test.each(FORMATS)(
  'webpack, %s: without any driver it builds, and runs on sqlite: where its sources are not',
  async (format) => {
    const app = await withPackage()
    const bundle = await byWebpack(app, format)
    // Otherwise the thread's file is found where it was when this was built.
    renameSync(join(app, 'node_modules'), join(app, 'elsewhere'))
    expect(await runAlone(bundle, 'sqlite:./q.db', { withItsFolder: true })).toMatchObject({ stdout: 'sum 3 true\n' })
    const { stderr } = await runAlone(bundle, 'postgres://localhost/x', { withItsFolder: true })
    expect(stderr).toMatch(/^DRIVER_MISSING .*npm install pg/)
  },
)

onPostgres('webpack on PostgreSQL', (url) => {
  test('with holdfast external, as the documentation says: no warning, the lease thread is there', async () => {
    const app = await withPackage('pg')
    await byWebpack(app, 'esm', { externals: { holdfast: 'module holdfast' } })
    const env = { ...process.env, STORE: await freshDatabase(url) }
    const { stdout, stderr } = await run(process.execPath, ['out/bundle.mjs'], { cwd: app, env })
    expect(stdout).toBe('sum 3 true\n')
    expect(stderr).not.toMatch(/renewed on the event loop/)
  })
})
