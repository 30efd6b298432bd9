/** The tasks of a queue that have not ended, as one bar. All bars of a page have one scale. */

import { plural, VIEW_WORDS } from '../../text/words.ts'
import type { Queue } from '../../types.ts'

const PARTS = ['running', 'ready', 'retrying', 'parked', 'scheduled'] as const

/** Square roots, so that a few running tasks are visible next to a hundred thousand waiting ones. */
const lengthOf = (queue: Queue): number => PARTS.reduce((sum, name) => sum + Math.sqrt(queue[name] ?? 0), 0)

/** The longest bar. */
export const mostOf = (queues: readonly Queue[]): number => Math.max(1, ...queues.map(lengthOf))

export const QueueLegend = () => (
  <p class="legend">
    {PARTS.map((name) => (
      <span key={name} data-view={name}>
        {VIEW_WORDS[name]}
      </span>
    ))}
    <span class="note">lengths are square roots</span>
  </p>
)

export const QueueBar = ({ queue, most }: { readonly queue: Queue; readonly most: number }) => {
  const shown = PARTS.filter((name) => queue[name] > 0).map((name) => `${queue[name]} ${VIEW_WORDS[name]}`)
  return (
    <span class="queue-bar" role="img" aria-label={shown.join(', ') || plural(0, 'task')}>
      {PARTS.map(
        (name) =>
          queue[name] > 0 && (
            <i key={name} data-view={name} style={{ width: `${(100 * Math.sqrt(queue[name])) / most}%` }} />
          ),
      )}
    </span>
  )
}
