/** `npm test`: runs all checks and all test projects, then fails if any of them failed. */
import { availableParallelism } from 'node:os'
import { runAll, type Step } from './run-all.ts'

/** Ordered so that the fastest and most failure-prone come first. */
const PROJECTS = ['quick', 'doors', 'crash', 'timed', 'servers', 'browser'] as const

const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  // Much of this is waiting for processes, so one file more than there are cores runs beside the others.
  crash: [`--maxWorkers=${availableParallelism() + 1}`],
  // Files share a server: the open transaction of one may be what another counts. A test that fails is run once more, and the report says so.
  servers: ['--retry=1'],
}

const steps: readonly Step[] = [
  { name: 'check', command: 'npm', args: ['run', '--silent', 'check'] },
  ...PROJECTS.map((name) => ({ name, command: 'vitest', args: ['run', '--project', name, ...(OPTIONS[name] ?? [])] })),
]
const failed = runAll(steps)
console.log(failed.length === 0 ? 'all passed' : `FAILED: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
