/** `holdfast prune`: removes tasks that ended long enough ago; their idempotency keys live until they expire. */
import { HoldfastError, parseDuration, parseView, TaskStatus } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { withClient } from '../program/session.ts'
import { agreed, type BulkOptions, tasks } from './shared/bulk.ts'

interface Options extends BulkOptions {
  readonly olderThan?: string
  readonly status?: readonly string[]
}

const BY_DEFAULT: readonly TaskStatus[] = ['completed', 'failed', 'cancelled', 'expired']

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  const { olderThan, queue } = options
  if (olderThan === undefined)
    throw new HoldfastError('INVALID_OPTION', '--older-than is required: 7d, 12h, 0', { field: '--older-than' })
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

/** Of the views only `dead` names a status, `failed`. The API refuses tasks that have not ended. */
const statusOf = (name: string): TaskStatus => {
  const view = parseView(name.trim())
  if (view === 'dead') return 'failed'
  const status = Object.values(TaskStatus).find((one) => one === view)
  if (status !== undefined && status !== 'pending' && status !== 'running') return status
  throw new HoldfastError('INVALID_OPTION', `--status: only ended tasks can be removed, not ${view}`, {
    field: '--status',
  })
}
