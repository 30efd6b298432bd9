/** `holdfast workers`: who is alive, and what they serve. */
import type { Instant, WorkerInfo } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'
import { type Column, err, out, outJson, printable, relative, shorten, table } from '../render.ts'
import { type GlobalOptions, withClient } from '../session.ts'

export const run = (_: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const [workers, now] = await Promise.all([client.workers(), client.now()])
    if (options.json) outJson(workers.map(withInstants))
    else if (workers.length === 0) err('no live workers')
    else out(table(columns(now), workers).trimEnd())
    return EXIT.ok
  })

const withInstants = ({ startedAt, beatAt, ...info }: WorkerInfo): Record<string, unknown> => ({
  ...info,
  startedAt: new Date(startedAt).toISOString(),
  beatAt: new Date(beatAt).toISOString(),
})

const columns = (now: Instant): Column<WorkerInfo>[] => [
  { title: 'ID', cell: ({ id }) => shorten(printable(id), 48) },
  { title: 'QUEUES', cell: ({ queues }) => shorten(queues.join(','), 40) },
  { title: 'TYPES', cell: ({ types }) => shorten(types.join(','), 40) },
  { title: 'CONCURRENCY', cell: ({ concurrency }) => String(concurrency), align: 'right' },
  { title: 'VERSION', cell: ({ version }) => printable(version) },
  { title: 'STARTED', cell: ({ startedAt }) => relative(startedAt, now) },
  { title: 'BEAT', cell: ({ beatAt }) => relative(beatAt, now) },
]
