/** `holdfast prune`: removes tasks that ended long enough ago; their idempotency keys live on to their own end. */
import { HoldfastError, parseDuration, parseView, TaskStatus } from '../../index.ts'
import { agreed, type BulkOptions, tasks } from '../bulk.ts'
import { EXIT } from '../exit-codes.ts'
import { out, outJson } from '../render.ts'
import { withClient } from '../session.ts'

interface Options extends BulkOptions {
  readonly olderThan?: string
  readonly status?: readonly string[]
}

const BY_DEFAULT: readonly TaskStatus[] = ['completed', 'failed', 'cancelled', 'expired']

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  const { olderThan, queue } = options
  if (olderThan === undefined)
    throw new HoldfastError('INVALID_OPTION', '--older-than is needed: 7d, 12h, 0', { field: '--older-than' })
  const age = parseDuration(olderThan === '0' ? 0 : olderThan, '--older-than')
  const status = options.status?.flatMap((names) => names.split(',')).map(statusOf) ?? BY_DEFAULT
  const where = { status, ...(queue === undefined ? null : { queue }) }
  return withClient(options, { create: false }, async (client) => {
    const query = { ...where, completedBefore: (await client.now()) - age + 1 }
    const [{ count, capped }, page] = await Promise.all([client.count(query), client.list({ ...query, limit: 10 })])
    if (!(await agreed({ verb: 'remove', count, capped, sample: page.tasks }, options))) return EXIT.ok
    const removed = await client.prune({ ...where, olderThan: { milliseconds: age } })
    if (options.json) outJson({ removed })
    else out(`removed ${tasks(removed)}`)
    return EXIT.ok
  })
}

/** A view is no status but for the dead, who are the failed; the API says no to what has not ended. */
const statusOf = (name: string): TaskStatus => {
  const view = parseView(name.trim())
  if (view === 'dead') return 'failed'
  const status = Object.values(TaskStatus).find((one) => one === view)
  if (status !== undefined && status !== 'pending' && status !== 'running') return status
  throw new HoldfastError('INVALID_OPTION', `--status: only ended tasks can be removed, not ${view}`, {
    field: '--status',
  })
}
