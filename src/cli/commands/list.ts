/** `holdfast list`: a table of tasks; the cursor of the next page goes to standard error. */
import { errorLine, type Instant, parseView, type Task } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { type Column, err, fitted, out, outJson, printable, relative, statusStyle, table } from '../output/render.ts'
import { integer, tag } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly status?: readonly string[]
  readonly type?: string
  readonly queue?: string
  readonly group?: string
  readonly tag?: string
  readonly limit?: string
  readonly cursor?: string
  readonly oldest?: boolean
}

export const run = (_: readonly string[], options: Options): Promise<number> => {
  const { type, queue, group, cursor } = options
  const status = options.status?.flatMap((names) => names.split(',')).map((name) => parseView(name.trim()))
  const query = {
    ...(status === undefined ? null : { status }),
    ...(type === undefined ? null : { type }),
    ...(queue === undefined ? null : { queue }),
    ...(group === undefined ? null : { group }),
    ...(cursor === undefined ? null : { cursor }),
    ...(options.tag === undefined ? null : { tag: tag(options.tag) }),
    ...(options.limit === undefined ? null : { limit: integer(options.limit) }),
    order: options.oldest ? ('oldest' as const) : ('newest' as const),
  }
  return withClient(options, { create: false }, async (client) => {
    const [page, now] = await Promise.all([client.list(query), client.now()])
    if (options.json) outJson({ tasks: page.tasks.map(listed), cursor: page.cursor })
    else if (page.tasks.length === 0) err('no tasks')
    else {
      out(table(columns(now), page.tasks).trimEnd())
      if (page.cursor !== null) err(`more: --cursor ${page.cursor}`)
    }
    return EXIT.ok
  })
}

/** Lists have no histories: an absent field is better than an empty one. */
const listed = (task: Task): Record<string, unknown> => {
  const { history: _, ...fields } = task.toJSON()
  return fields
}

const columns = (now: Instant): Column<Task>[] => [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'TYPE', cell: ({ type }) => fitted(type, 40) },
  { title: 'QUEUE', cell: ({ queue }) => fitted(queue, 24) },
  { title: 'STATUS', cell: (task) => task.viewAt(now), style: (task) => statusStyle(task.viewAt(now)) },
  { title: 'ATTEMPTS', cell: ({ attempts }) => String(attempts), align: 'right' },
  { title: 'CREATED', cell: ({ createdAt }) => relative(createdAt, now) },
  { title: 'NOTE', cell: (task) => fitted(printable(note(task, now)), 60), style: () => 'dim' },
]

/** The most useful fact about a task in this state. */
const note = (task: Task, now: Instant): string => {
  const { status, availableAt, expiresAt, lease, lastError } = task
  if (status === 'running') return `on ${lease!.workerId}`
  if (status === 'failed') return lastError === null ? '' : errorLine(lastError)
  if (status === 'archived') return `was ${task.archivedFrom}`
  if (status !== 'pending') return ''
  const due = availableAt > now ? dueText(task, now) : ''
  const expiry = expiresAt === null ? '' : expiresAt <= now ? 'past its expiry' : `expires ${relative(expiresAt, now)}`
  return [due, expiry].filter((part) => part !== '').join(', ')
}

/** A wait without a timeout has no date that means anything. */
const dueText = ({ parked, availableAt }: Task, now: Instant): string => {
  if (parked?.signal === undefined) return `due ${relative(availableAt, now)}`
  const end = parked.until === null ? '' : `, times out ${relative(parked.until, now)}`
  return `waits for signal ${parked.signal}${end}`
}
