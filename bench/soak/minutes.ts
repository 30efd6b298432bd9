/** What the process that submits adds to its samples: what it did, and how many tasks there are. */
import { COUNTED_VIEWS } from '../../src/core/views.ts'
import type { Client, CountedView } from '../../src/index.ts'
import type { Load } from './load.ts'
import { extend } from './probe.ts'
import type { Visitors } from './visitors.ts'

const MOST_COUNTED = 200_000

export const reportMinutes = (client: Client, load: Load, visitors: Visitors): void =>
  extend(async () => {
    const { submitted, refused } = load.counts()
    const stats = await client.stats({ cap: MOST_COUNTED }).catch(() => null)
    const failures = refused + visitors.failures()
    if (stats === null) return { submitted, refused: failures + 1 }
    const views = Object.fromEntries(
      COUNTED_VIEWS.map((view) => [view, stats.reduce((sum, queue) => sum + queue[view], 0)]),
    ) as Record<CountedView, number>
    const tasks = Object.values(views).reduce((sum, count) => sum + count, 0)
    return { submitted, refused: failures, tasks, ...views }
  })
