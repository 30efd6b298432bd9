/** `holdfast doctor`: checks the health of the store and its workers, and says how to fix problems. */
import type { Finding } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson, paint, printable, type Style } from '../output/render.ts'
import { type GlobalOptions, openClient } from '../program/session.ts'

const STYLES: Readonly<Record<Finding['verdict'], Style>> = { ok: 'green', warning: 'yellow', problem: 'red' }

interface Options extends GlobalOptions {
  readonly repairClock?: boolean
}

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  // It only reads: an old schema is reported, not migrated.
  const client = await openClient(options, { create: false, postgres: { migrate: false } })
  try {
    const repaired = options.repairClock === true ? await client.repairClock() : null
    const findings = await client.examine()
    const count = (verdict: Finding['verdict']): number => findings.filter((one) => one.verdict === verdict).length
    const [problems, warnings] = [count('problem'), count('warning')]
    if (options.json) outJson({ address: client.address, problems, warnings, findings, ...(repaired && { repaired }) })
    else {
      if (repaired !== null)
        out(
          `repaired: ${many(repaired.tasks, 'task')}, ${many(repaired.leases, 'lease')} and ${many(repaired.schedules, 'schedule')} count from now`,
        )
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

const lines = ({ check, verdict, found, fix }: Finding): string[] => [
  `${paint(STYLES[verdict], verdict.padEnd(LONGEST_VERDICT))}  ${check.padEnd(LONGEST_CHECK)}  ${printable(found)}`,
  ...(fix === null ? [] : [`${' '.repeat(LONGEST_VERDICT + LONGEST_CHECK + 4)}${paint('dim', '→')} ${printable(fix)}`]),
]

const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

const summary = (address: string, problems: number, warnings: number): string => {
  if (problems + warnings === 0) return paint('bold', `${address} is healthy`)
  return paint('bold', `${address}: ${many(problems, 'problem')}, ${many(warnings, 'warning')}`)
}
