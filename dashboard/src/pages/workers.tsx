/** The live workers: what they do now, and what they could do. */
import { Ago, Head, Panel, ShortId } from '../parts/basics.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { useResource } from '../resource.ts'
import { hrefOf, taskHref } from '../route.ts'
import { now } from '../text/time.ts'
import { number, plural, rate } from '../text/words.ts'
import type { Task, TaskPage, WorkerInfo } from '../types.ts'

/** A worker sends a heartbeat every few seconds. After this long without one it is marked. */
const LATE = 15_000
const MOST_TYPES = 6
const MOST_TASKS = 3
/** No more running tasks are read than this. */
const MOST_RUNNING = 200

const Types = ({ types }: { readonly types: readonly string[] }) => {
  const tags = (some: readonly string[]) =>
    some.map((type) =>
      type === '*' ? (
        <span class="tag" key={type}>
          every type
        </span>
      ) : (
        <a class="tag" key={type} href={hrefOf(`types/${encodeURIComponent(type)}`)}>
          {type}
        </a>
      ),
    )
  if (types.length <= MOST_TYPES) return <>{tags(types)}</>
  return (
    <>
      {tags(types.slice(0, MOST_TYPES - 1))}
      <details class="more">
        <summary>{types.length - MOST_TYPES + 1} more</summary>
        {tags(types.slice(MOST_TYPES - 1))}
      </details>
    </>
  )
}

interface RowProps {
  readonly worker: WorkerInfo
  readonly running: readonly Task[]
  readonly isMore: boolean
}

const Row = ({ worker, running, isMore }: RowProps) => {
  const isLate = now.value - Date.parse(worker.beatAt) > LATE
  return (
    <tr data-worker={worker.id}>
      <th scope="row">
        <a href={hrefOf('tasks', { status: 'running', workerId: worker.id })} data-row>
          {worker.id}
        </a>
        <span class="note">
          {worker.via === 'http' ? `over HTTP, by ${worker.host}` : `${worker.host}, process ${worker.pid}`}, version{' '}
          {worker.version}
        </span>
      </th>
      <td data-label="Busy">
        <b>
          {running.length}
          {isMore && '+'}
        </b>{' '}
        of {worker.concurrency}
        {worker.stuck.count > 0 && (
          <span class="note bad">
            {worker.stuck.count} stuck{worker.claiming ? '' : ', not claiming'}
          </span>
        )}
        <span class="now">
          {running.slice(0, MOST_TASKS).map(({ id, type }) => (
            <a key={id} href={taskHref(id)}>
              {type} <ShortId id={id} />
            </a>
          ))}
        </span>
      </td>
      <td data-label="Per minute" class="number">
        {rate((60 * worker.recent.completed) / worker.recent.seconds)}
        <span class={`note${worker.recent.failed > 0 ? ' bad' : ''}`}>{number(worker.recent.failed)} failed</span>
      </td>
      <td data-label="Queues" class="types">
        {worker.queues.map((queue) => (
          <a class="tag" key={queue} href={hrefOf(`queues/${encodeURIComponent(queue)}`)}>
            {queue}
          </a>
        ))}
      </td>
      <td data-label="Types" class="types">
        <Types types={worker.types} />
      </td>
      <td data-label="Started" class="time">
        <Ago at={worker.startedAt} />
      </td>
      <td data-label="Heartbeat" class="time">
        <span class={isLate ? 'bad' : 'beat'}>
          <Ago at={worker.beatAt} />
        </span>
      </td>
    </tr>
  )
}

export const Workers = () => {
  const workers = useResource<{ readonly workers: readonly WorkerInfo[] }>('/workers', { every: 3_000 })
  const running = useResource<TaskPage>('/tasks', { query: { status: 'running', limit: MOST_RUNNING }, every: 3_000 })
  const slots = workers.data?.workers.reduce((so, { concurrency }) => so + concurrency, 0) ?? 0
  const tasksOf = (id: string): readonly Task[] =>
    (running.data?.tasks ?? []).filter(({ lease }) => lease?.workerId === id)
  return (
    <>
      <Head
        title="Workers"
        note={workers.data && `${plural(workers.data.workers.length, 'worker')}, ${plural(slots, 'slot')}`}
      />
      <Loaded of={workers}>
        {({ workers: known }) =>
          known.length === 0 ? (
            <Empty title="No live workers">
              Tasks wait until a worker starts: <code>holdfast worker ./handlers.ts</code>
            </Empty>
          ) : (
            <Panel flush>
              <table class="cards">
                <thead>
                  <tr>
                    <th scope="col">Worker</th>
                    <th scope="col">Busy</th>
                    <th scope="col" class="number" title="Over the last 5 minutes">
                      Per minute
                    </th>
                    <th scope="col">Queues</th>
                    <th scope="col">Types</th>
                    <th scope="col" class="time">
                      Started
                    </th>
                    <th scope="col" class="time">
                      Heartbeat
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {known.map((worker) => (
                    <Row
                      key={worker.id}
                      worker={worker}
                      running={tasksOf(worker.id)}
                      isMore={running.data !== null && running.data.cursor !== null}
                    />
                  ))}
                </tbody>
              </table>
            </Panel>
          )
        }
      </Loaded>
    </>
  )
}
