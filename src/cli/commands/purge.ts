/** `holdfast purge`: permanently removes dead letters: one, several, a group, or all that match. */
import type { PurgeReport } from '../../index.ts'
import { errorFacts } from '../output/errors.ts'
import { EXIT, EXIT_CODES } from '../output/exit-codes.ts'
import { err, out, outJson, paint, printable } from '../output/render.ts'
import { withClient } from '../program/session.ts'
import { agreed, type DeadOptions, deadOf, STOPPED, STOPPED_EXIT, tasks, withProgress } from './shared/bulk.ts'

export const run = async (ids: readonly string[], options: DeadOptions): Promise<number> => {
  const which = deadOf(ids, options)
  return withClient(options, { create: false }, async (client) => {
    // A purge cannot be undone, so it asks for ids too.
    const plan = await client.deadLetters.purge(which, { dryRun: true })
    if (!(await agreed({ verb: 'purge', count: plan.matched, ...plan }, options))) return EXIT.ok
    const report = await withProgress(plan.matched, (watch) => client.deadLetters.purge(which, watch))
    return printReport(report, options)
  })
}

const printReport = (report: PurgeReport, { json = false }: DeadOptions): number => {
  const { results, stopped } = report
  const refused = results.flatMap((result) => ('error' in result ? [result] : []))
  if (json) {
    const { sample: _, ...rest } = report
    const shown = results.map((one) => ('error' in one ? { id: one.id, error: errorFacts(one.error) } : { id: one.id }))
    outJson({ ...rest, results: shown })
  } else {
    for (const { id, error } of refused)
      err(`${printable(id)} ${paint('red', 'error', process.stderr)}: ${printable(error.message)} (${error.code})`)
    out(`purged ${tasks(results.length - refused.length)}${refused.length === 0 ? '' : `, ${refused.length} refused`}`)
    if (stopped !== null) err(STOPPED[stopped])
  }
  return Math.max(
    stopped === null ? EXIT.ok : STOPPED_EXIT[stopped],
    ...refused.map(({ error }) => EXIT_CODES[error.code]),
  )
}
