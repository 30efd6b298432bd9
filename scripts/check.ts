/** Everything that can be checked without running the tests: types, lint, format, unused code, printed docs. */
import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'

const CHECKS: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['types', 'tsc', '-p', 'tsconfig.json'],
  ['types of the dashboard', 'tsc', '-p', 'dashboard/tsconfig.json'],
  ['format and lint', 'biome', 'check', '--error-on-warnings', '.'],
  [
    'promises',
    'oxlint',
    '--type-aware',
    '--deny',
    'typescript/no-floating-promises',
    '--deny',
    'typescript/no-misused-promises',
    'src',
    'dashboard/src',
  ],
  ['unused code', 'knip'],
  ['printed docs', 'node', 'scripts/print-docs.ts', '--check'],
  ['code in the docs', 'node', 'scripts/check-blocks.ts'],
  ['links of the docs', 'node', 'scripts/check-links.ts'],
]

const run = (command: string, args: readonly string[]): Promise<string | null> =>
  promisify(execFile)(command, args, { maxBuffer: 1 << 26 }).then(
    () => null,
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  )

const complaints = CHECKS.map(() => Promise.withResolvers<string | null>())
let next = 0
const work = async (): Promise<void> => {
  while (next < CHECKS.length) {
    const i = next++
    const [, command, ...args] = CHECKS[i]!
    complaints[i]!.resolve(await run(command, args))
  }
}
for (let core = 0; core < availableParallelism(); core++) void work()

process.exitCode = 0
for (const [i, [name]] of CHECKS.entries()) {
  const complaint = await complaints[i]!.promise
  if (complaint === null) console.log(`ok    ${name}`)
  else {
    process.exitCode = 1
    console.error(`FAIL  ${name}\n${complaint}`)
  }
}
