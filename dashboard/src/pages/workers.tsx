/** The live workers. */
import { Ago, Head, Panel } from '../parts/basics.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { useResource } from '../resource.ts'
import { hrefOf } from '../route.ts'
import { now } from '../time.ts'
import type { WorkerInfo } from '../types.ts'
import { plural } from '../words.ts'

/** A worker sends a heartbeat every few seconds. After this long without one it is marked. */
const LATE = 15_000

const Row = ({ worker }: { readonly worker: WorkerInfo }) => {
  const isLate = now.value - Date.parse(worker.beatAt) > LATE
  return (
    <tr data-worker={worker.id}>
      <th scope="row">
        <a href={hrefOf('tasks', { status: 'running', workerId: worker.id })} data-row>
          {worker.id}
        </a>
        <span class="note">
          {worker.host}, process {worker.pid}
        </span>
      </th>
      <td data-label="Queues">{worker.queues.join(', ')}</td>
      <td data-label="Types" class="types">
        {worker.types.map((type) => (
          <span class="tag" key={type}>
            {type}
          </span>
        ))}
      </td>
      <td data-label="Slots" class="number">
        {worker.concurrency}
        {worker.stuck.count > 0 && (
          <span class="note bad">
            {worker.stuck.count} stuck{worker.claiming ? '' : ', not claiming'}
          </span>
        )}
      </td>
      <td data-label="Version">{worker.version}</td>
      <td data-label="Started" class="time">
        <Ago at={worker.startedAt} />
      </td>
      <td data-label="Last heartbeat" class="time">
        <span class={isLate ? 'bad' : 'beat'}>
          <Ago at={worker.beatAt} />
        </span>
      </td>
    </tr>
  )
}

export const Workers = () => {
  const workers = useResource<{ readonly workers: readonly WorkerInfo[] }>('/workers', { every: 3_000 })
  const slots = workers.data?.workers.reduce((so, { concurrency }) => so + concurrency, 0) ?? 0
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
                    <th scope="col">Queues</th>
                    <th scope="col">Types</th>
                    <th scope="col" class="number">
                      Slots
                    </th>
                    <th scope="col">Version</th>
                    <th scope="col" class="time">
                      Started
                    </th>
                    <th scope="col" class="time">
                      Last heartbeat
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {known.map((worker) => (
                    <Row key={worker.id} worker={worker} />
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
