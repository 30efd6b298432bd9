/** `npm test`: runs all checks and all test projects, then fails if any of them failed. */
import { availableParallelism } from 'node:os'
import { lineOf, runAll, type Step } from './run-all.ts'

/** Ordered so that the fastest and most failure-prone come first. */
const PROJECTS = ['quick', 'doors', 'crash', 'timed', 'servers', 'browser'] as const

/**
 * A test that fails is run once more, because other work on the machine or a shared server may be the cause; each is printed
 * with its first error (repeated-tests.ts). `npm run test:quick` repeats nothing.
 */
const AGAIN = '--retry=1'

/** Much of their time is waiting: for processes, for leases that must end, for servers that start again. */
const MORE = `--maxWorkers=${availableParallelism() + 2}`

const OPTIONS: Readonly<Record<(typeof PROJECTS)[number], readonly string[]>> = {
  quick: [AGAIN],
  doors: [AGAIN, MORE],
  crash: [AGAIN, MORE],
  timed: [AGAIN],
  servers: [AGAIN, MORE],
  // A browser is at work all the time.
  browser: [AGAIN, `--maxWorkers=${availableParallelism()}`],
}

const steps: readonly Step[] = [
  { name: 'check', command: 'npm', args: ['run', '--silent', 'check'] },
  ...PROJECTS.map((name) => ({ name, command: 'vitest', args: ['run', '--project', name, ...OPTIONS[name]] })),
  { name: 'site', command: 'node', args: ['scripts/check-site.ts'] },
  { name: 'runtimes', command: 'node', args: ['scripts/runtimes.ts'] },
]
const ended = runAll(steps)
for (const step of ended) console.log(lineOf(step))
process.exitCode = ended.every(({ passed }) => passed) ? 0 : 1
