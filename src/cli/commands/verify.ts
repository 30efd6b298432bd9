/** `holdfast verify`: checks every history of the store, and the logs of witnesses against them. */
import { type Verdict, type Verification, type VerifyOptions, verify } from '../../testing/index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson, paint, printable, type Style } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly witness?: readonly string[]
  readonly drained?: boolean
  readonly allSubmitted?: boolean
  readonly kept?: string
  readonly recovery?: string
  readonly deadline?: string
  readonly clockBound?: string
}

/** What else the command line knows, such as --no-color, is no option of the check. */
const OPTIONS = ['witness', 'drained', 'allSubmitted', 'kept', 'recovery', 'deadline', 'clockBound'] as const

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  const given = OPTIONS.filter((name) => options[name] !== undefined).map((name) => [name, options[name]])
  const wanted = Object.fromEntries(given) as VerifyOptions
  const verification = await withClient(options, { create: false }, (client) => verify(client, wanted))
  if (options.json) outJson(verification)
  else print(verification)
  return verification.violations > 0 ? EXIT.unwell : EXIT.ok
}

const number = (count: number): string => count.toLocaleString('en')

const print = (verification: Verification): void => {
  const { address, tasks, schedules, witness, lateRuns, verdicts, found, violations } = verification
  out(`${printable(address)}: ${number(tasks)} tasks, ${number(schedules)} schedules`)
  out(
    witness.files === 0
      ? 'no logs of witnesses (--witness)'
      : `logs: ${number(witness.files)} files, ${number(witness.lines)} lines (${number(witness.cut)} cut short), ${number(witness.runs)} runs, ${number(lateRuns)} of which ended after another worker had the task`,
  )
  for (const verdict of verdicts) out(line(verdict))
  for (const { invariant, task, what } of found)
    out(printable(`${invariant}: ${task === null ? what : `task ${task}: ${what}`}`))
  if (violations > found.length) out(`and ${number(violations - found.length)} more`)
  out(paint('bold', violations === 0 ? 'no violations' : `${number(violations)} violations`))
}

const WORDS = { ok: 'ok', violated: 'VIOLATED', unchecked: 'not checked' } as const
const STYLES: Readonly<Record<keyof typeof WORDS, Style>> = { ok: 'green', violated: 'red', unchecked: 'yellow' }
const LONGEST_WORD = Math.max(...Object.values(WORDS).map(({ length }) => length))
const LONGEST_ID = 3

const line = ({ invariant, promise, checked, violations, of }: Verdict): string => {
  const state = violations > 0 ? 'violated' : checked > 0 ? 'ok' : 'unchecked'
  const count = state === 'unchecked' ? of : `${number(violations)} violations, ${number(checked)} ${of}`
  const title = promise.slice(0, promise.indexOf(':'))
  return `${paint(STYLES[state], WORDS[state].padEnd(LONGEST_WORD))}  ${invariant.padEnd(LONGEST_ID)}  ${title}: ${count}`
}
