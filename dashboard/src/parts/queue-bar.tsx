/** What a queue holds that has not ended, as one bar. */
import type { Queue } from '../types.ts'
import { plural } from '../words.ts'

const PARTS = ['running', 'ready', 'retrying', 'scheduled'] as const

export const QueueBar = ({ queue }: { readonly queue: Queue }) => {
  const told = PARTS.filter((name) => queue[name] > 0).map((name) => `${queue[name]} ${name}`)
  return (
    <span class="queue-bar" role="img" aria-label={told.join(', ') || plural(0, 'task')}>
      {PARTS.map(
        (name) =>
          queue[name] > 0 && (
            // A root, so that a few running tasks can be seen beside a hundred thousand that wait.
            <i key={name} data-view={name} style={{ flexGrow: String(Math.sqrt(queue[name])) }} />
          ),
      )}
    </span>
  )
}
