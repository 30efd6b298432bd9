/** `holdfast cancel`: cancels pending tasks and asks running ones to stop; by id, or all that match. */
import type { Task } from '../../index.ts'
import { errorFacts } from '../output/errors.ts'
import { EXIT, EXIT_CODES } from '../output/exit-codes.ts'
import { err, out, outJson, printable } from '../output/render.ts'
import { withClient } from '../program/session.ts'
import {
  agreed,
  type BulkOptions,
  filterOf,
  mustChoose,
  STOPPED,
  tasks,
  withoutHistory,
  withProgress,
} from './shared/bulk.ts'
import { eachTask } from './shared/each-task.ts'

interface Options extends BulkOptions {
  readonly reason?: string
  readonly group?: string
}

export const run = async (ids: readonly string[], options: Options): Promise<number> => {
  const filter = { ...filterOf(options), ...(options.group === undefined ? null : { group: options.group }) }
  mustChoose(ids, Object.keys(filter).length > 0, '--type, --queue, --group or --tag')
  const reason = options.reason === undefined ? {} : { reason: options.reason }
  if (ids.length > 0) return eachTask(ids, options, { move: (client, id) => client.cancel(id, reason), describe })
  return withClient(options, { create: false }, async (client) => {
    const query = { ...filter, status: ['pending', 'running'] }
    const [{ count, capped }, page] = await Promise.all([client.count(query), client.list({ ...query, limit: 10 })])
    if (!(await agreed({ verb: 'cancel', count, capped, sample: page.tasks }, options))) return EXIT.ok
    let isStopped = false
    const results = await withProgress(count, async (watch) => {
      const done = await client.cancelMany(filter, { ...reason, ...watch })
      isStopped = watch.signal.aborted
      return done
    })
    const refused = results.flatMap((result) => ('error' in result ? [result] : []))
    const asked = results.filter((result) => 'task' in result && result.task.status === 'running').length
    if (options.json)
      outJson(
        results.map((result) =>
          'task' in result
            ? { id: result.id, task: withoutHistory(result.task) }
            : { id: result.id, error: errorFacts(result.error) },
        ),
      )
    else {
      for (const { id, error } of refused) err(`${id} error: ${printable(error.message)} (${error.code})`)
      out(`cancelled ${tasks(results.length - refused.length - asked)}, asked ${asked} to stop`)
      if (isStopped) err(STOPPED.aborted)
    }
    return Math.max(isStopped ? EXIT.interrupted : EXIT.ok, ...refused.map(({ error }) => EXIT_CODES[error.code]))
  })
}

const describe = ({ status, lease }: Task): string =>
  status === 'running' ? `asked to stop (running on ${printable(lease!.workerId)})` : status
