/**
 * `npm run mutants`: plants each bug of test/mutants in a copy of this repository and runs the tests that should turn red.
 * `npm run mutants -- --only retention` takes those whose text matches the expression; `--whole` runs the whole project instead of the named files.
 * Exits with 1 if a bug survives.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Mutant, planted } from '../test/mutants/mutant.ts'
import { MUTANTS } from '../test/mutants/table.ts'

const root = join(import.meta.dirname, '..')
/** A bug may make a test wait for ever: that is noticed too. */
const LONGEST_RUN = 600_000
const LEFT_OUT = new Set(['node_modules', '.git', 'test-artefacts'])

const reports = mkdtempSync(join(tmpdir(), 'holdfast-mutant-reports-'))

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    whole: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '1' },
  },
})

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly message: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

const copyOfRepository = (): string => {
  const copy = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'))
  cpSync(root, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

/** Its exit code; `late`: it did not end. */
const exited = (copy: string, args: readonly string[]): Promise<number | null | 'late'> =>
  new Promise((done) => {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const child = spawn(process.execPath, [vitest, 'run', ...args], { cwd: copy, stdio: 'ignore', detached: true })
    const timer = setTimeout(() => {
      process.kill(-child.pid!, 'SIGKILL')
      done('late')
    }, LONGEST_RUN)
    child.once('close', (code) => {
      clearTimeout(timer)
      done(code)
    })
  })

/** The first test that fails; null: all are green. */
const firstFailure = async (
  copy: string,
  project: string,
  tests: readonly string[],
  bail = ['--bail', '1'],
): Promise<string | null> => {
  const output = join(reports, `${basename(copy)}.json`)
  rmSync(output, { force: true })
  const args = ['--project', project, ...bail, '--reporter', 'json', '--outputFile', output]
  // The test of the table reads the source, and sees every bug.
  args.push(...(options.whole ? ['--exclude', 'test/mutants/**'] : tests.map((test) => join('test', test))))
  const code = await exited(copy, args)
  if (code === 'late') return 'a run that does not end'
  if (code === 0) return null
  const { testResults } = JSON.parse(readFileSync(output, 'utf8')) as Report
  for (const { name, status, message, assertionResults } of testResults) {
    const failed = assertionResults.find((one) => one.status === 'failed')
    if (failed !== undefined) return `${name.slice(copy.length + 1)}: ${failed.fullName}`
    if (status === 'failed') return `${name.slice(copy.length + 1)}: ${message.split('\n')[0]}`
  }
  // Of tests that run beside each other the report may leave out the one that ended the run.
  return bail.length > 0 ? firstFailure(copy, project, tests, []) : `exit code ${code}`
}

/** What noticed the bug; null: nothing did. */
const caughtBy = async (copy: string, mutant: Mutant): Promise<string | null> => {
  const path = join(copy, 'src', mutant.file)
  const source = readFileSync(path, 'utf8')
  writeFileSync(path, planted(source, mutant))
  try {
    return await firstFailure(copy, mutant.project ?? 'quick', mutant.tests)
  } finally {
    writeFileSync(path, source)
  }
}

/** A test that is red anyway would notice everything. */
const mustBeGreen = async (mutants: readonly Mutant[]): Promise<void> => {
  for (const [project, some] of Map.groupBy(mutants, (mutant) => mutant.project ?? 'quick')) {
    const failed = await firstFailure(root, project, [...new Set(some.flatMap(({ tests }) => tests))])
    if (failed !== null) throw new Error(`red without a planted bug: ${failed}`)
  }
}

const wanted = MUTANTS.filter((mutant) => new RegExp(options.only).test(JSON.stringify(mutant)))
const waiting = [...wanted]
const survivors: Mutant[] = []

const work = async (): Promise<void> => {
  const copy = copyOfRepository()
  try {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const began = performance.now()
      const by = await caughtBy(copy, mutant)
      if (by === null) survivors.push(mutant)
      const seconds = ((performance.now() - began) / 1_000).toFixed(1)
      console.log(`${by === null ? 'SURVIVED' : 'caught'}  ${mutant.file}: ${mutant.breaks} (${seconds} s)`)
      if (by !== null) console.log(`          by ${by}`)
    }
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

await mustBeGreen(wanted)
await Promise.all(Array.from({ length: Number(options.jobs) }, work))
rmSync(reports, { recursive: true })
console.log(`${wanted.length} planted, ${wanted.length - survivors.length} caught, ${survivors.length} survived`)
process.exitCode = survivors.length === 0 ? 0 : 1
