/** `npm test`: runs all checks and all test projects, then fails if any of them failed. */
import { availableParallelism } from 'node:os'
import { runAll, type Step } from './run-all.ts'

/** Ordered so that the fastest and most failure-prone come first. */
const PROJECTS = ['quick', 'doors', 'crash', 'timed', 'servers', 'browser'] as const

/** Much of these is waiting for servers and processes, so one file more than there are cores runs beside the others. */
const WAITING: readonly string[] = ['crash', 'servers']
const besides = (name: string): readonly string[] =>
  WAITING.includes(name) ? [`--maxWorkers=${availableParallelism() + 1}`] : []

const steps: readonly Step[] = [
  { name: 'check', command: 'npm', args: ['run', '--silent', 'check'] },
  ...PROJECTS.map((name) => ({ name, command: 'vitest', args: ['run', '--project', name, ...besides(name)] })),
]
const failed = runAll(steps)
console.log(failed.length === 0 ? 'all passed' : `FAILED: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
