/** Everything that can be checked without running the tests: types, lint, format, unused code, printed docs. */
import { spawnSync } from 'node:child_process'

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
]

let failed = 0
for (const [name, command, ...args] of CHECKS) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status === 0) console.log(`ok    ${name}`)
  else {
    failed++
    console.error(`FAIL  ${name}\n${stdout}${stderr}`)
  }
}
process.exitCode = failed === 0 ? 0 : 1
