/** The benchmarks themselves: that they run, and that they say what they are for. How fast anything is, no test can promise. */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Report as DeploymentReport } from '../bench/deployment/measure.ts'
import type { CellResult } from '../bench/deployment/results.ts'
import { POSTGRES } from '../bench/deployment/systems.ts'
import { dueOf, type Shape, tasksOf } from '../bench/deployment/tasks.ts'
import { judge } from '../bench/deployment/verdicts.ts'
import type { Report } from '../bench/measure.ts'

const run = promisify(execFile)
const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
const single = (...args: string[]) => run(process.execPath, [path('../bench/single.ts'), ...args])
const deployment = (...args: string[]) => run(process.execPath, [path('../bench/main.ts'), ...args])

const needsDist = (): void => {
  if (!existsSync(path('../dist/index.js')))
    throw new Error("this test runs the built package, and dist is missing: run 'npm run build' first")
}

/** One tiny run for all the tests that read its report. */
const once = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | null = null
  return () => (made ??= make())
}

const measured = once(async (): Promise<Report> => {
  needsDist()
  const { stdout } = await single('--store', 'sqlite', '--no-peers', '--tasks', '200', '--runs', '1', '--json')
  return (JSON.parse(stdout) as Report[])[0]!
})

describe.concurrent('the benchmark of one type in one process', () => {
  test('prints the ratio of batch inserts to a bare loop, and of many callers to one', async () => {
    const { ratios } = await measured()
    const names = ratios.map(({ name }) => name)
    expect(names).toContain('insert-batch / raw-sqlite')
    expect(names).toContain('insert-64-callers / insert-1-caller')
    for (const { name, value } of ratios) expect(value, name).toBeGreaterThan(0)
  })

  test('measures Holdfast in every workload', async () => {
    const { rows } = await measured()
    expect(
      new Set(rows.filter(({ median }) => median['holdfast-sqlite']! > 0).map(({ workload }) => workload)),
    ).toEqual(
      new Set([
        'insert-batch',
        'insert-all',
        'insert-1-caller',
        'insert-64-callers',
        'drain-100',
        'drain-10',
        'latency',
        'idle',
      ]),
    )
  })

  test('says what each system keeps, and how to measure again', async () => {
    const { systems, command } = await measured()
    expect(Object.keys(systems)).toEqual(['holdfast-sqlite', 'raw-sqlite'])
    expect(systems['holdfast-sqlite']?.durability).toContain('FULL')
    expect(command).toBe('node bench/single.ts --store sqlite --no-peers --tasks 200 --runs 1 --json')
  })

  test('explains itself with an example', async () => {
    const { stdout } = await single('--help')
    expect(stdout).toContain('Example:')
  })

  test('refuses a workload that does not exist, and names those that do', async () => {
    await expect(single('--no-peers', '--only', 'nonsense')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/nonsense.*insert-batch/s),
    })
  })

  test('refuses a store that it does not measure, and names those that it does', async () => {
    await expect(single('--no-peers', '--store', 'paper')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/sqlite, postgres.*paper/s),
    })
  })

  test('refuses a number of tasks that is none', async () => {
    await expect(single('--no-peers', '--tasks', 'many')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("not 'many'"),
    })
  })
})

const ONE = 'drain/1-type/1-process/1-queue'
const SEVERAL = 'drain/2-types/2-processes/5-queues'
const STEADY = 'steady/50-per-second'

const deployed = once(async (): Promise<DeploymentReport> => {
  needsDist()
  const cells = [ONE, SEVERAL, 'mix', STEADY, 'insert-batch'].flatMap((name) => ['--only', name])
  const little = ['--store', 'sqlite', '--no-peers', '--tasks', '200', '--runs', '1', '--seconds', '1', '--json']
  const { stdout } = await deployment(...little, ...cells)
  return JSON.parse(stdout) as DeploymentReport
})

describe.concurrent('the benchmark of a deployment', () => {
  test('measures waiting tasks of several types, queues and processes', async () => {
    const { cells, failures } = await deployed()
    expect(failures).toEqual([])
    for (const name of [ONE, SEVERAL, 'mix', 'insert-batch']) {
      const figures = cells.find((cell) => cell.name === name)?.runs['holdfast-sqlite']
      expect(figures?.['tasks/s']?.[0], name).toBeGreaterThan(0)
      expect(figures?.['CPU per task']?.[0], name).toBeGreaterThan(0)
    }
  })

  test('times tasks that are submitted one by one until they start in another process', async () => {
    const { cells } = await deployed()
    const figures = cells.find(({ name }) => name === STEADY)?.runs['holdfast-sqlite']
    expect(figures?.p50?.[0]).toBeGreaterThan(0)
    expect(figures?.['not run']).toEqual([0])
    expect(figures?.errors).toEqual([0])
  })

  test('judges only targets whose cells were measured', async () => {
    const { targets } = await deployed()
    expect(targets.map(({ name }) => name)).toEqual(['SQLite, 50 a second, p50', 'SQLite, 50 a second, p99'])
  })

  test('takes the ratio of a target round by round', () => {
    const cell = (name: string, rates: readonly number[]): CellResult => ({
      name,
      what: name,
      kind: 'drain',
      runs: { [POSTGRES]: { 'tasks/s': rates } },
    })
    const slower = cell('drain/10-types/1-process/1-queue', [50, 170, 90])
    expect(judge([cell(ONE, [100, 200, 100]), slower])).toEqual([
      { name: 'PostgreSQL, 10 types to one type', value: 0.85, unit: '×', target: 'at least 0.85 ×', met: true },
    ])
  })

  test('mixes failures, expiry, delays, priorities and large payloads into all types alike', () => {
    const shape: Shape = { types: 10, queues: 1, isMixed: true }
    const tasks = Array.from({ length: 10_000 }, (_, n) => tasksOf(shape)(n))
    const share = (is: (task: (typeof tasks)[number]) => boolean): number => tasks.filter(is).length / tasks.length
    expect(share(({ input }) => input.fails === true)).toBeCloseTo(0.05, 1)
    expect(share(({ ttlMs }) => ttlMs !== null)).toBeCloseTo(0.1, 1)
    expect(share(({ input }) => JSON.stringify(input).length > 10_000)).toBeCloseTo(0.1, 1)
    expect(new Set(tasks.map(({ priority }) => priority))).toEqual(new Set([0, 1, 2]))
    const later = tasks.filter(({ delayMs }) => delayMs !== null)
    expect(dueOf(shape, tasks.length)).toBe(tasks.length - later.length)
    expect(new Set(later.map(({ type }) => type)).size).toBe(10)
  })

  test('explains itself with an example', async () => {
    const { stdout } = await deployment('--help')
    expect(stdout).toContain('Example:')
    expect(stdout).toContain('--quick')
  })

  test.each([
    [['--only', 'nonsense'], /nonsense.*drain\/1-type\/1-process\/1-queue.*idle/s],
    [['--store', 'paper'], /sqlite, postgres.*paper/s],
    [['--systems', 'abacus'], /abacus.*holdfast-postgres.*bullmq/s],
    [['--types', '7'], /--types must be 1, 2, 10, 50, not '7'/],
    [['--tasks', 'many'], /not 'many'/],
    [['--store', 'sqlite', '--systems', 'bullmq'], /leave no system/],
    [['--faster'], /--faster/],
  ])('refuses %j and says what there is', async (args, message) => {
    await expect(deployment('--no-peers', ...args)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(message),
    })
  })
})

test.concurrent('a soak whose handler keeps something of each task fails, and names what grows', async () => {
  needsDist()
  const out = mkdtempSync(join(tmpdir(), 'holdfast-soak-test-'))
  try {
    const options = ['--store', 'memory', '--minutes', '0.2', '--every', '1', '--leak', '1000000', '--out', out]
    const failure = await run(process.execPath, [path('../bench/soak.ts'), ...options]).catch((error) => error)
    expect(failure).toMatchObject({ code: 1 })
    expect(failure.stdout).toMatch(/\| resident memory \(MB\) \| process \|.*GROWS/)
    expect(failure.stdout).toMatch(/\| heap after collection \(MB\) \| process \|/)
    const [facts, first] = readFileSync(join(out, 'soak-memory.jsonl'), 'utf8').trim().split('\n')
    expect(JSON.parse(facts!)).toMatchObject({ store: 'memory', rate: 40 })
    expect(JSON.parse(first!).work).toMatchObject({ refused: 0 })
    expect(readFileSync(join(out, 'soak-memory.svg'), 'utf8')).toContain('resident memory, MB')
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
})
