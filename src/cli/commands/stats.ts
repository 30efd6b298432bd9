/** `holdfast stats`: one row per queue, and the total. */
import { COUNTED_VIEWS, type CountedView, limitsText, type QueueStats } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { type Column, err, instant, out, outJson, printable, statusStyle, table } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

const COLUMNS: readonly Column<QueueStats>[] = [
  {
    title: 'QUEUE',
    cell: ({ queue, paused, pausedUntil }) =>
      paused ? `${queue} (paused${pausedUntil === null ? '' : ` until ${instant(pausedUntil)}`})` : queue,
  },
  ...COUNTED_VIEWS.map(
    (name): Column<QueueStats> => ({
      title: name.toUpperCase(),
      cell: (row) => `${row[name]}${row.capped.includes(name) ? '+' : ''}`,
      align: 'right',
      style: (row) => (row[name] === 0 ? 'dim' : statusStyle(name)),
    }),
  ),
]

const LIMITS: Column<QueueStats> = {
  title: 'LIMITS',
  cell: ({ limits, pausedGroups }) =>
    [
      limits === null ? '' : limitsText(limits),
      pausedGroups.length === 0 ? '' : `paused: ${pausedGroups.map(printable).join(', ')}`,
    ]
      .filter((part) => part !== '')
      .join('; '),
}

const columnsFor = (queues: readonly QueueStats[]): readonly Column<QueueStats>[] =>
  queues.some(({ limits, pausedGroups }) => limits !== null || pausedGroups.length > 0) ? [...COLUMNS, LIMITS] : COLUMNS

export const run = (_: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const queues = [...(await client.stats())].sort((a, b) => (a.queue < b.queue ? -1 : 1))
    if (options.json) outJson(queues)
    else if (queues.length === 0) err('no queues yet')
    else out(table(columnsFor(queues), queues.length === 1 ? queues : [...queues, total(queues)]).trimEnd())
    return EXIT.ok
  })

const total = (queues: readonly QueueStats[]): QueueStats => ({
  queue: 'total',
  paused: false,
  pausedUntil: null,
  pause: null,
  groupPauses: {},
  limits: null,
  pausedGroups: [],
  ...(Object.fromEntries(
    COUNTED_VIEWS.map((name) => [name, queues.reduce((so, queue) => so + queue[name], 0)]),
  ) as Record<CountedView, number>),
  capped: COUNTED_VIEWS.filter((name) => queues.some(({ capped }) => capped.includes(name))),
})
