/** Query parameters as the library's own options. */
import { HoldfastError, type ListOptions, type TaskQuery } from '../../index.ts'
import { type Schema, text } from './schemas.ts'

export const TASK_QUERY: Readonly<Record<string, Schema>> = {
  status: text(
    'a status or view, or several with commas: pending, ready, scheduled, retrying, parked, running, completed, failed, dead, cancelled, expired, archived',
  ),
  queue: text(),
  type: text(),
  group: text('the group of the task'),
  tag: text('name=value'),
  workerId: text('running tasks of this worker'),
  text: text(
    'a part of the id, the type, the key or the error: searches the newest tasks for a short while, then gives a cursor',
  ),
  error: text('only this error: a fingerprint from the groups of dead letters'),
  createdAfter: text('an instant'),
  createdBefore: text('an instant'),
  completedBefore: text('an instant'),
}

export const PAGE_QUERY: Readonly<Record<string, Schema>> = {
  order: { type: 'string', enum: ['newest', 'oldest'] },
  limit: { type: 'integer', description: 'at most 200; higher values are reduced to 200', default: 50 },
  cursor: text('from the previous page'),
}

export const FIELDS: Schema = {
  type: 'string',
  enum: ['summary', 'all'],
  description: 'summary: without inputs, outputs and stacks; all: with them, up to 1 MiB each',
  default: 'summary',
}

/** Maximum number of tasks that one request scans, to bound its time. */
export const MAX_SCANNED = 50_000

/** Maximum page size: to read everything, follow the cursors or export. */
const MOST = 200
const PAGE = 50

type Given = Readonly<Record<string, string>>

export const taskQuery = ({ status, tag, order: _, limit: __, cursor: ___, ...rest }: Given): TaskQuery => ({
  ...rest,
  ...(status === undefined ? null : { status: status.split(',') }),
  ...(tag === undefined ? null : { tag: tagOf(tag) }),
})

export const listOptions = (given: Given): ListOptions & { readonly limit: number } => {
  const { order, limit, cursor } = given
  return {
    ...taskQuery(given),
    maxScanned: MAX_SCANNED,
    limit: limit === undefined ? PAGE : Math.min(wholeNumber(limit, 'limit'), MOST),
    ...(order === undefined ? null : { order: order as 'newest' }),
    ...(cursor === undefined ? null : { cursor }),
  }
}

export const wholeNumber = (given: string, field: string): number => {
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw new HoldfastError('INVALID_OPTION', `${field} must be a whole number`, { field })
}

/** The name of the tag in `name=value`. */
export const tagNameOf = (given: string): string => tagOf(given).name

const tagOf = (given: string): { name: string; value: string } => {
  const at = given.indexOf('=')
  if (at > 0) return { name: given.slice(0, at), value: given.slice(at + 1) }
  throw new HoldfastError('INVALID_OPTION', 'tag must be name=value', { field: 'tag' })
}
