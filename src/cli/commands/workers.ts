/** `holdfast workers`: lists live workers and what they serve. */
import type { Instant, WorkerInfo } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { type Column, err, fitted, out, outJson, printable, relative, table } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = (_: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const [workers, now] = await Promise.all([client.workers(), client.now()])
    if (options.json) outJson(workers.map(withInstants))
    else if (workers.length === 0) err('no live workers')
    else out(table(columns(now), workers).trimEnd())
    return EXIT.ok
  })

const withInstants = ({ startedAt, beatAt, stuck, ...info }: WorkerInfo): Record<string, unknown> => ({
  ...info,
  startedAt: new Date(startedAt).toISOString(),
  beatAt: new Date(beatAt).toISOString(),
  stuck: { ...stuck, tasks: stuck.tasks.map((task) => ({ ...task, since: new Date(task.since).toISOString() })) },
})

/** At the limit it also says that the worker stopped claiming. */
const stuckCell = ({ stuck, claiming }: WorkerInfo): string =>
  claiming ? String(stuck.count) : `${stuck.count}, not claiming`

const columns = (now: Instant): Column<WorkerInfo>[] => [
  { title: 'ID', cell: ({ id }) => fitted(printable(id), 48) },
  { title: 'QUEUES', cell: ({ queues }) => fitted(queues.join(','), 40) },
  { title: 'TYPES', cell: ({ types }) => fitted(types.join(','), 40) },
  { title: 'CONCURRENCY', cell: ({ concurrency }) => String(concurrency), align: 'right' },
  { title: 'STUCK', cell: stuckCell, align: 'right' },
  { title: 'VERSION', cell: ({ version }) => printable(version) },
  { title: 'STARTED', cell: ({ startedAt }) => relative(startedAt, now) },
  { title: 'BEAT', cell: ({ beatAt }) => relative(beatAt, now) },
]
