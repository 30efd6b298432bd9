/**
 * A reporter for vitest: at the end, each test that failed first and passed when it was run again, with the error of its
 * first attempt, so that a repetition hides nothing. Their number is appended to the file that HOLDFAST_REPEATED_TESTS names.
 */
import { appendFileSync } from 'node:fs'
import type { Reporter, TestCase } from 'vitest/node'

const FRAMES = 4

const nameOf = (test: TestCase): string =>
  `${test.project.name ? `|${test.project.name}| ` : ''}${test.module.relativeModuleId} > ${test.fullName}`

const firstErrorOf = (test: TestCase): string => {
  const [error] = test.result().errors ?? []
  if (error === undefined) return 'without an error'
  const { name, message, diff, stack, stacks = [] } = error
  const frames =
    stacks.length > 0
      ? stacks.map(({ method, file, line, column }) => `at ${method ? `${method} ` : ''}${file}:${line}:${column}`)
      : (stack ?? '').split('\n').filter((line) => line.trimStart().startsWith('at '))
  return [`${name}: ${message}`, diff ?? [], frames.slice(0, FRAMES).map((frame) => `  ${frame.trim()}`)]
    .flat()
    .join('\n')
}

export default class RepeatedTests implements Reporter {
  readonly #repeated: TestCase[] = []

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky) this.#repeated.push(test)
  }

  onTestRunEnd(): void {
    if (this.#repeated.length === 0) return
    for (const test of this.#repeated)
      console.log(`\nREPEATED  ${nameOf(test)}\n${firstErrorOf(test).replace(/^/gm, '    ')}`)
    const file = process.env['HOLDFAST_REPEATED_TESTS']
    if (file) appendFileSync(file, '.'.repeat(this.#repeated.length))
  }
}
