/** The benchmark itself: that it runs, and that it says what it is for. How fast anything is, no test can promise. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Report } from '../bench/measure.ts'

const run = promisify(execFile)
const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
const bench = (...args: string[]) => run(process.execPath, [path('../bench/main.ts'), ...args])

/** One tiny run for all the tests that read its report. */
const tinyRun = async (): Promise<Report> => {
  if (!existsSync(path('../dist/index.js')))
    throw new Error("this test runs the built package, and dist is missing: run 'npm run build' first")
  const { stdout } = await bench('--store', 'sqlite', '--no-peers', '--tasks', '200', '--runs', '1', '--json')
  return (JSON.parse(stdout) as Report[])[0]!
}
let report: Promise<Report> | null = null
const measured = (): Promise<Report> => (report ??= tinyRun())

describe('the benchmark', () => {
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
    expect(command).toBe('node bench/main.ts --store sqlite --no-peers --tasks 200 --runs 1 --json')
  })

  test('explains itself with an example', async () => {
    const { stdout } = await bench('--help')
    expect(stdout).toContain('Example:')
  })

  test('refuses a workload that does not exist, and names those that do', async () => {
    await expect(bench('--no-peers', '--only', 'nonsense')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/nonsense.*insert-batch/s),
    })
  })

  test('refuses a store that it does not measure, and names those that it does', async () => {
    await expect(bench('--no-peers', '--store', 'paper')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/sqlite, postgres.*paper/s),
    })
  })

  test('refuses a number of tasks that is none', async () => {
    await expect(bench('--no-peers', '--tasks', 'many')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("not 'many'"),
    })
  })
})
