/** `npm test`: all checks and all projects of tests; then it fails if any of them did. */
import { runAll, type Step } from './run-all.ts'

/** In this order: what is quick and breaks most often comes first. */
const PROJECTS = ['quick', 'doors', 'crash', 'timed', 'servers', 'browser'] as const

const steps: readonly Step[] = [
  { name: 'check', command: 'npm', args: ['run', '--silent', 'check'] },
  ...PROJECTS.map((name) => ({ name, command: 'vitest', args: ['run', '--project', name] })),
]
const failed = runAll(steps)
console.log(failed.length === 0 ? 'all passed' : `FAILED: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
