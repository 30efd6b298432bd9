/** `holdfast replay`: runs dead letters again: one, several, a group, or all that match. */
import {
  type Client,
  type DeadQuery,
  type EachResult,
  errorLine,
  type ReplayOptions,
  type ReplayReport,
} from '../../index.ts'
import { errorFacts } from '../output/errors.ts'
import { EXIT, EXIT_CODES } from '../output/exit-codes.ts'
import { err, out, outJson, paint, printable } from '../output/render.ts'
import { instantText, integer } from '../program/input.ts'
import { withClient } from '../program/session.ts'
import {
  agreed,
  type DeadOptions,
  deadOf,
  STOPPED,
  STOPPED_EXIT,
  tasks,
  withoutHistory,
  withProgress,
} from './shared/bulk.ts'

interface Options extends DeadOptions {
  readonly rate?: string
  readonly canary?: string
  readonly canaryTimeout?: string
  readonly asNew?: boolean
  readonly fresh?: boolean
  readonly ttl?: string
  readonly expiresAt?: string
}

export const run = async (ids: readonly string[], options: Options): Promise<number> => {
  const which = deadOf(ids, options)
  const how = howOf(options)
  return withClient(options, { create: false }, async (client) => {
    if (ids.length > 0 && !options.dryRun) {
      await warnWithoutWorkers(client)
      return printReport(client, await replay(client, ids, how, ids.length), options, true)
    }
    const plan = await client.deadLetters.replay(which, { dryRun: true })
    if (!(await agreed({ verb: 'replay', count: plan.matched, ...plan }, options))) return EXIT.ok
    await warnWithoutWorkers(client)
    return printReport(client, await replay(client, which, how, plan.matched), options, false)
  })
}

const howOf = ({ rate, canary, canaryTimeout, asNew, fresh, ttl, expiresAt }: Options): ReplayOptions => ({
  ...(rate === undefined ? null : { rate: Number(rate) }),
  ...(canary === undefined ? null : { canary: integer(canary) }),
  ...(canaryTimeout === undefined ? null : { canaryTimeout }),
  ...(asNew === undefined ? null : { asNew }),
  ...(fresh === undefined ? null : { fresh }),
  ...(ttl === undefined ? null : { ttl }),
  ...(expiresAt === undefined ? null : { expiresAt: instantText(expiresAt) }),
})

const replay = (
  client: Client,
  which: readonly string[] | DeadQuery,
  how: ReplayOptions,
  total: number,
): Promise<ReplayReport> => withProgress(total, (watch) => client.deadLetters.replay(which, { ...how, ...watch }))

/** Replayed tasks wait for a worker; with canaries, this command waits too. */
const warnWithoutWorkers = async (client: Client): Promise<void> => {
  if ((await client.workers()).length > 0) return
  err(`${paint('yellow', 'warning', process.stderr)}: no worker is live: replayed tasks wait until one starts`)
}

const printReport = async (
  client: Client,
  report: ReplayReport,
  { json = false }: Options,
  oneByOne: boolean,
): Promise<number> => {
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
    if (canary !== null) for (const id of canary.failed) err(await failedCanary(client, id))
    if (stopped !== null) err(STOPPED[stopped])
  }
  return Math.max(
    stopped === null ? EXIT.ok : STOPPED_EXIT[stopped],
    ...refused.map(({ error }) => EXIT_CODES[error.code]),
  )
}

/** Which canary failed, and its new error. */
const failedCanary = async (client: Client, id: string): Promise<string> => {
  const task = await client.get(id).catch(() => null)
  const status = task === null ? 'gone' : task.status === 'failed' ? '' : `still ${task.status}`
  const why = task?.status === 'failed' && task.lastError !== null ? errorLine(task.lastError) : status
  return `canary ${id} did not complete: ${printable(why)}`
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
