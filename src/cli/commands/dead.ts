/** `holdfast dead`: the dead letters, one by one or by what they died of. */
import type { Client, DeadGroup, Instant, Task } from '../../index.ts'
import { type BulkOptions, filterOf, withoutHistory } from '../bulk.ts'
import { EXIT } from '../exit-codes.ts'
import { integer } from '../input.ts'
import { type Column, err, instant, out, outJson, printable, relative, shorten, table } from '../render.ts'
import { withClient } from '../session.ts'

interface Options extends BulkOptions {
  readonly groups?: boolean
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
    ...(cursor === undefined ? null : { cursor }),
    ...(limit === undefined ? null : { limit: integer(limit) }),
    order: oldest ? 'oldest' : 'newest',
  })
  if (options.json) outJson({ tasks: page.tasks.map(withoutHistory), cursor: page.cursor })
  else if (page.tasks.length === 0) err('no dead letters')
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
  if (found.capped && !options.json) err(`only the oldest ${found.scanned} dead letters were looked at`)
}

const shownGroup = ({ sample, firstSeenAt, lastSeenAt, ...group }: DeadGroup): Record<string, unknown> => ({
  ...group,
  firstSeenAt: new Date(firstSeenAt).toISOString(),
  lastSeenAt: new Date(lastSeenAt).toISOString(),
  sample: withoutHistory(sample),
})

const letterColumns = (now: Instant): Column<Task>[] => [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'TYPE', cell: ({ type }) => shorten(type, 40) },
  { title: 'QUEUE', cell: ({ queue }) => shorten(queue, 24) },
  { title: 'ATTEMPTS', cell: ({ attempts }) => String(attempts), align: 'right' },
  { title: 'DIED', cell: ({ completedAt }) => (completedAt === null ? '' : relative(completedAt, now)) },
  { title: 'ERROR', cell: ({ lastError }) => told(lastError?.name, lastError?.message), style: () => 'dim' },
]

const groupColumns = (now: Instant): Column<DeadGroup>[] => [
  { title: 'GROUP', cell: ({ fingerprint }) => fingerprint },
  { title: 'COUNT', cell: ({ count }) => String(count), align: 'right' },
  { title: 'FIRST', cell: ({ firstSeenAt }) => instant(firstSeenAt) },
  { title: 'LAST', cell: ({ lastSeenAt }) => relative(lastSeenAt, now) },
  { title: 'TYPES', cell: ({ types }) => shorten(types.join(','), 40) },
  { title: 'ERROR', cell: ({ name, pattern }) => told(name, pattern), style: () => 'dim' },
]

const told = (name = 'Error', message = ''): string => shorten(printable(`${name}: ${message}`), 60)
