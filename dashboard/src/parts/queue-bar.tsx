/** The tasks of a queue that have not ended, as one bar. */
import type { Queue } from '../types.ts'
import { plural } from '../words.ts'

const PARTS = ['running', 'ready', 'retrying', 'scheduled'] as const

export const QueueBar = ({ queue }: { readonly queue: Queue }) => {
  const shown = PARTS.filter((name) => queue[name] > 0).map((name) => `${queue[name]} ${name}`)
  return (
    <span class="queue-bar" role="img" aria-label={shown.join(', ') || plural(0, 'task')}>
      {PARTS.map(
        (name) =>
          queue[name] > 0 && (
            // Square root, so that a few running tasks are visible next to a hundred thousand waiting ones.
            <i key={name} data-view={name} style={{ flexGrow: String(Math.sqrt(queue[name])) }} />
          ),
      )}
    </span>
  )
}
