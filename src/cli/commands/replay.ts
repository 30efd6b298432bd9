/** `holdfast replay`: dead letters run again; one, several, a group, or all that match. */
import type { Client, DeadQuery, EachResult, ReplayOptions, ReplayReport } from '../../index.ts'
import {
  agreed,
  type BulkOptions,
  filterOf,
  mustChoose,
  STOPPED,
  STOPPED_EXIT,
  tasks,
  withoutHistory,
  withProgress,
} from '../bulk.ts'
import { errorFacts } from '../errors.ts'
import { EXIT, EXIT_CODES } from '../exit-codes.ts'
import { instantText, integer } from '../input.ts'
import { err, out, outJson, paint, printable } from '../render.ts'
import { withClient } from '../session.ts'

interface Options extends BulkOptions {
  readonly group?: string
  readonly all?: boolean
  readonly rate?: string
  readonly canary?: string
  readonly canaryTimeout?: string
  readonly asNew?: boolean
  readonly ttl?: string
  readonly expiresAt?: string
}

export const run = async (ids: readonly string[], options: Options): Promise<number> => {
  const query: DeadQuery = { ...filterOf(options), ...(options.group === undefined ? null : { group: options.group }) }
  mustChoose(ids, options.all === true || Object.keys(query).length > 0, '--group, --type, --queue, --tag or --all')
  const how = howOf(options)
  return withClient(options, { create: false }, async (client) => {
    if (ids.length > 0 && !options.dryRun) return tell(await replay(client, ids, how, ids.length), options, true)
    const which = ids.length > 0 ? ids : query
    const plan = await client.deadLetters.replay(which, { dryRun: true })
    if (!(await agreed({ verb: 'replay', count: plan.matched, ...plan }, options))) return EXIT.ok
    return tell(await replay(client, which, how, plan.matched), options, false)
  })
}

const howOf = ({ rate, canary, canaryTimeout, asNew, ttl, expiresAt }: Options): ReplayOptions => ({
  ...(rate === undefined ? null : { rate: Number(rate) }),
  ...(canary === undefined ? null : { canary: integer(canary) }),
  ...(canaryTimeout === undefined ? null : { canaryTimeout }),
  ...(asNew === undefined ? null : { asNew }),
  ...(ttl === undefined ? null : { ttl }),
  ...(expiresAt === undefined ? null : { expiresAt: instantText(expiresAt) }),
})

const replay = (
  client: Client,
  which: readonly string[] | DeadQuery,
  how: ReplayOptions,
  total: number,
): Promise<ReplayReport> => withProgress(total, (watch) => client.deadLetters.replay(which, { ...how, ...watch }))

const tell = (report: ReplayReport, { json = false }: Options, oneByOne: boolean): number => {
  const { results, stopped, canary } = report
  const refused = results.flatMap((result) => ('error' in result ? [result] : []))
  if (json) {
    const { sample: _, ...rest } = report
    outJson({ ...rest, results: results.map(shownResult) })
  } else {
    for (const { id, error } of refused)
      err(
        `${printable(id)} ${paint('red', 'error', process.stderr)}: ${printable(error.message)} ${paint('dim', `(${error.code})`, process.stderr)}`,
      )
    if (oneByOne) for (const result of results) if ('task' in result) out(line(result))
    if (!oneByOne)
      out(
        `replayed ${tasks(results.length - refused.length)}${refused.length === 0 ? '' : `, ${refused.length} refused`}`,
      )
    if (canary !== null) out(`canary: ${canary.replayed - canary.failed.length} of ${canary.replayed} completed`)
    if (stopped !== null) err(STOPPED[stopped])
  }
  return Math.max(
    stopped === null ? EXIT.ok : STOPPED_EXIT[stopped],
    ...refused.map(({ error }) => EXIT_CODES[error.code]),
  )
}

const line = ({
  id,
  task,
}: {
  readonly id: string
  readonly task: Extract<EachResult, { task: unknown }>['task']
}): string =>
  task.id === id ? `${id} ${task.status} (replay_count: ${task.replayCount})` : `${id} replayed as ${task.id}`

const shownResult = (result: EachResult): Record<string, unknown> =>
  'error' in result
    ? { id: result.id, error: errorFacts(result.error) }
    : { id: result.id, task: withoutHistory(result.task) }
