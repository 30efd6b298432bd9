/** `holdfast dead`: lists dead letters, one by one or grouped by error. */
import { type Client, type DeadGroup, errorLine, type Instant, type Task } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { type Column, err, fitted, instant, out, outJson, printable, relative, table } from '../output/render.ts'
import { integer } from '../program/input.ts'
import { withClient } from '../program/session.ts'
import { type BulkOptions, filterOf, withoutHistory } from './shared/bulk.ts'

interface Options extends BulkOptions {
  readonly groups?: boolean
  readonly group?: string
  readonly limit?: string
  readonly cursor?: string
  readonly oldest?: boolean
}

export const run = (_: readonly string[], options: Options): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const now = await client.now()
    await (options.groups ? groups(client, options, now) : letters(client, options, now))
    return EXIT.ok
  })

const letters = async (client: Client, options: Options, now: Instant): Promise<void> => {
  const { cursor, limit, oldest } = options
  const page = await client.deadLetters.list({
    ...filterOf(options),
    ...(options.group === undefined ? null : { group: options.group }),
    ...(cursor === undefined ? null : { cursor }),
    ...(limit === undefined ? null : { limit: integer(limit) }),
    order: oldest ? 'oldest' : 'newest',
  })
  if (options.json) outJson({ tasks: page.tasks.map(withoutHistory), cursor: page.cursor })
  else if (page.tasks.length === 0)
    err(options.group === undefined ? 'no dead letters' : 'no dead letters of this group')
  else {
    out(table(letterColumns(now), page.tasks).trimEnd())
    if (page.cursor !== null) err(`more: --cursor ${page.cursor}`)
  }
}

const groups = async (client: Client, options: Options, now: Instant): Promise<void> => {
  const found = await client.deadLetters.groups(filterOf(options))
  if (options.json) outJson({ ...found, groups: found.groups.map(shownGroup) })
  else if (found.groups.length === 0) err('no dead letters')
  else out(table(groupColumns(now), found.groups).trimEnd())
  if (found.capped && !options.json) err(`only the newest ${found.scanned} dead letters were read`)
}

const shownGroup = ({ sample, firstSeenAt, lastSeenAt, ...group }: DeadGroup): Record<string, unknown> => ({
  ...group,
  firstSeenAt: new Date(firstSeenAt).toISOString(),
  lastSeenAt: new Date(lastSeenAt).toISOString(),
  sample: withoutHistory(sample),
})

const letterColumns = (now: Instant): Column<Task>[] => [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'TYPE', cell: ({ type }) => fitted(type, 40) },
  { title: 'QUEUE', cell: ({ queue }) => fitted(queue, 24) },
  { title: 'ATTEMPTS', cell: ({ attempts }) => String(attempts), align: 'right' },
  { title: 'DIED', cell: ({ completedAt }) => (completedAt === null ? '' : relative(completedAt, now)) },
  {
    title: 'ERROR',
    cell: ({ lastError }) => (lastError === null ? '' : fitted(printable(errorLine(lastError)), 60)),
    style: () => 'dim',
  },
]

const groupColumns = (now: Instant): Column<DeadGroup>[] => [
  { title: 'GROUP', cell: ({ fingerprint }) => fingerprint },
  { title: 'COUNT', cell: ({ count }) => String(count), align: 'right' },
  { title: 'FIRST', cell: ({ firstSeenAt }) => instant(firstSeenAt) },
  { title: 'LAST', cell: ({ lastSeenAt }) => relative(lastSeenAt, now) },
  { title: 'TYPES', cell: ({ types }) => fitted(types.join(','), 40) },
  {
    title: 'ERROR',
    cell: ({ name, pattern }) => fitted(printable(pattern === '' ? name : `${name}: ${pattern}`), 60),
    style: () => 'dim',
  },
]
