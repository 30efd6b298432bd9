/** The live workers that serve a queue, or a type. */
import { useResource } from '../resource.ts'
import { hrefOf } from '../route.ts'
import { plural } from '../text/words.ts'
import type { WorkerInfo } from '../types.ts'
import { Panel } from './basics.tsx'

interface ServingProps {
  readonly serves: (worker: WorkerInfo) => boolean
  /** How to start one. */
  readonly command: string
}

export const Serving = ({ serves, command }: ServingProps) => {
  const { data } = useResource<{ readonly workers: readonly WorkerInfo[] }>('/workers', { every: 5_000 })
  const workers = (data?.workers ?? []).filter(serves)
  const slots = workers.reduce((sum, { concurrency }) => sum + concurrency, 0)
  return (
    <Panel title="Workers" name="workers" aside={data !== null && <span class="note">{plural(slots, 'slot')}</span>}>
      {workers.length === 0 ? (
        data !== null && (
          <p class="note">
            No live worker serves it: <code>{command}</code>
          </p>
        )
      ) : (
        <ul class="serving">
          {workers.map(({ id, concurrency }) => (
            <li key={id}>
              <a href={hrefOf('tasks', { status: 'running', workerId: id })}>{id}</a>{' '}
              <span class="note">{plural(concurrency, 'slot')}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
