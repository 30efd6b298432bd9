/** `holdfast doctor`: is the store well, and are those who use it? Says how to mend what is not. */
import type { Finding } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'
import { out, outJson, paint, printable, type Style } from '../render.ts'
import { type GlobalOptions, openClient } from '../session.ts'

const STYLES: Readonly<Record<Finding['verdict'], Style>> = { ok: 'green', warning: 'yellow', problem: 'red' }

export const run = async (_: readonly string[], options: GlobalOptions): Promise<number> => {
  // It only looks: what is too old is told, not migrated.
  const client = await openClient(options, { create: false, postgres: { migrate: false } })
  try {
    const findings = await client.examine()
    const count = (verdict: Finding['verdict']): number => findings.filter((one) => one.verdict === verdict).length
    const [problems, warnings] = [count('problem'), count('warning')]
    if (options.json) outJson({ address: client.address, problems, warnings, findings })
    else {
      for (const finding of findings) for (const line of lines(finding)) out(line)
      out(summary(client.address, problems, warnings))
    }
    return problems > 0 ? EXIT.unwell : EXIT.ok
  } finally {
    await client.close()
  }
}

const [LONGEST_VERDICT, LONGEST_CHECK] = ['problem', 'conditional-writes'].map(({ length }) => length) as [
  number,
  number,
]

const lines = ({ check, verdict, found, mend }: Finding): string[] => [
  `${paint(STYLES[verdict], verdict.padEnd(LONGEST_VERDICT))}  ${check.padEnd(LONGEST_CHECK)}  ${printable(found)}`,
  ...(mend === null
    ? []
    : [`${' '.repeat(LONGEST_VERDICT + LONGEST_CHECK + 4)}${paint('dim', '→')} ${printable(mend)}`]),
]

const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

const summary = (address: string, problems: number, warnings: number): string => {
  if (problems + warnings === 0) return paint('bold', `${address} is well`)
  return paint('bold', `${address}: ${many(problems, 'problem')}, ${many(warnings, 'warning')}`)
}
