/** `holdfast stats`: one row a queue, and the sum of them. */
import { COUNTED_VIEWS, type CountedView, type QueueStats } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'
import { type Column, err, out, outJson, statusStyle, table } from '../render.ts'
import { type GlobalOptions, withClient } from '../session.ts'

const COLUMNS: readonly Column<QueueStats>[] = [
  { title: 'QUEUE', cell: ({ queue, paused }) => (paused ? `${queue} (paused)` : queue) },
  ...COUNTED_VIEWS.map(
    (name): Column<QueueStats> => ({
      title: name.toUpperCase(),
      cell: (row) => `${row[name]}${row.capped.includes(name) ? '+' : ''}`,
      align: 'right',
      style: (row) => (row[name] === 0 ? 'dim' : statusStyle(name)),
    }),
  ),
]

export const run = (_: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const queues = [...(await client.stats())].sort((a, b) => (a.queue < b.queue ? -1 : 1))
    if (options.json) outJson(queues)
    else if (queues.length === 0) err('no queues yet')
    else out(table(COLUMNS, queues.length === 1 ? queues : [...queues, total(queues)]).trimEnd())
    return EXIT.ok
  })

const total = (queues: readonly QueueStats[]): QueueStats => ({
  queue: 'total',
  paused: false,
  ...(Object.fromEntries(
    COUNTED_VIEWS.map((name) => [name, queues.reduce((so, queue) => so + queue[name], 0)]),
  ) as Record<CountedView, number>),
  capped: COUNTED_VIEWS.filter((name) => queues.some(({ capped }) => capped.includes(name))),
})
