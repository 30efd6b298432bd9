/** `npm test`: runs all checks and all test projects, then fails if any of them failed. */
import { runAll, type Step } from './run-all.ts'

/** Ordered so that the fastest and most failure-prone come first. */
const PROJECTS = ['quick', 'doors', 'crash', 'timed', 'servers', 'browser'] as const

const steps: readonly Step[] = [
  { name: 'check', command: 'npm', args: ['run', '--silent', 'check'] },
  ...PROJECTS.map((name) => ({ name, command: 'vitest', args: ['run', '--project', name] })),
]
const failed = runAll(steps)
console.log(failed.length === 0 ? 'all passed' : `FAILED: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
