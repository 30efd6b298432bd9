/** Tasks, newest first, by page. Filters are part of the URL, so a link keeps them. */
import { useSignal } from '@preact/signals'
import { ApiError, get } from '../api.ts'
import { queues } from '../live.ts'
import { Ago, Head, Panel, Pill, ShortId } from '../parts/basics.tsx'
import { ICONS } from '../parts/icons.tsx'
import { Empty, Failure, Loaded } from '../parts/states.tsx'
import { useResource } from '../resource.ts'
import { go, hrefOf, route, taskHref } from '../route.ts'
import type { Count, Task, TaskPage, View } from '../types.ts'
import { number } from '../words.ts'

const VIEWS: readonly View[] = [
  'ready',
  'running',
  'scheduled',
  'retrying',
  'completed',
  'dead',
  'cancelled',
  'expired',
  'archived',
]

type Filters = Readonly<Record<string, string>>

const withFilter = (filters: Filters, name: string, value: string | undefined): string => {
  const { cursor: _, ...kept } = filters
  return hrefOf('tasks', { ...kept, [name]: value })
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** An id opens the task, name=value filters by tag, anything else is an idempotency key. */
const find = async (text: string, filters: Filters): Promise<void> => {
  if (UUID.test(text)) return go(taskHref(text.toLowerCase()))
  if (/^[^=]+=/.test(text)) return go(withFilter(filters, 'tag', text))
  const { id } = await get<Task>('/tasks/by-key', { key: text })
  go(taskHref(id))
}

const Search = ({ filters }: { readonly filters: Filters }) => {
  const text = useSignal('')
  const failed = useSignal<ApiError | null>(null)
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault()
        failed.value = null
        if (text.value.trim() === '') return
        find(text.value.trim(), filters).catch((thrown: unknown) => {
          if (thrown instanceof ApiError) failed.value = thrown
        })
      }}
    >
      <label>
        <span class="unseen">Search by id, idempotency key or tag</span>
        {ICONS.search}
        <input
          type="search"
          placeholder="Task id, idempotency key, or tag=value"
          value={text.value}
          spellcheck={false}
          onInput={(event) => {
            text.value = event.currentTarget.value
            failed.value = null
          }}
        />
      </label>
      {failed.value &&
        (failed.value.code === 'TASK_NOT_FOUND' ? (
          <p class="note" role="alert">
            No task has this key. Enter a complete id, or a tag as name=value.
          </p>
        ) : (
          <Failure error={failed.value} />
        ))}
    </form>
  )
}

const Views = ({ filters }: { readonly filters: Filters }) => (
  <ul class="views" aria-label="Status">
    {[undefined, ...VIEWS].map((view) => (
      <li key={view ?? ''}>
        <a
          href={withFilter(filters, 'status', view)}
          data-view={view}
          aria-current={filters['status'] === view ? 'true' : undefined}
        >
          {view ?? 'all'}
        </a>
      </li>
    ))}
  </ul>
)

const Narrow = ({ filters }: { readonly filters: Filters }) => {
  const known = (queues.value ?? []).map(({ queue }) => queue)
  const { queue = '', type = '' } = filters
  return (
    <div class="narrow">
      <label>
        <span>Queue</span>
        <select value={queue} onChange={(event) => go(withFilter(filters, 'queue', event.currentTarget.value))}>
          <option value="">all</option>
          {(queue === '' || known.includes(queue) ? known : [queue, ...known]).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>Type</span>
        <input
          type="text"
          value={type}
          placeholder="all"
          spellcheck={false}
          onChange={(event) => go(withFilter(filters, 'type', event.currentTarget.value.trim()))}
        />
      </label>
      {['tag', 'workerId'].map(
        (name) =>
          filters[name] && (
            <a key={name} class="chip" href={withFilter(filters, name, undefined)}>
              {name === 'tag' ? 'tag' : 'worker'} <b>{filters[name]}</b>
              <span aria-hidden="true"> ×</span>
              <span class="unseen"> remove this filter</span>
            </a>
          ),
      )}
    </div>
  )
}

const Row = ({ task }: { readonly task: Task }) => (
  <tr data-task={task.id}>
    <td>
      <Pill view={task.view} />
    </td>
    <th scope="row">
      <a href={taskHref(task.id)} data-row>
        {task.type}
      </a>
      <ShortId id={task.id} />
    </th>
    <td data-label="Queue">{task.queue}</td>
    <td class="number" data-label="Attempts">
      {task.attempts}
    </td>
    <td class="what" data-label="Last">
      {task.lease ? (
        <span class="note">{task.lease.workerId}</span>
      ) : task.lastError && task.status !== 'completed' ? (
        <span class="bad">{task.lastError.message || task.lastError.name}</span>
      ) : (
        <span class="tags">
          {Object.entries(task.tags ?? {}).map(([name, value]) => (
            <span class="tag" key={name}>
              {name}={value}
            </span>
          ))}
        </span>
      )}
    </td>
    <td class="time" data-label="Created">
      <Ago at={task.createdAt} />
    </td>
  </tr>
)

const Total = ({ filters }: { readonly filters: Filters }) => {
  const { cursor: _, ...query } = filters
  const { data } = useResource<Count>('/tasks/count', { query, every: 10_000 })
  return data === null ? null : (
    <>
      {number(data.count)}
      {data.capped && '+'} {data.count === 1 ? 'task' : 'tasks'}
    </>
  )
}

const None = ({ filters, cursor }: { readonly filters: Filters; readonly cursor: string | null }) =>
  cursor !== null ? (
    <Empty title="None among the newest">
      <a href={hrefOf('tasks', { ...filters, cursor })}>Search older tasks</a>
    </Empty>
  ) : Object.keys(filters).length === 0 ? (
    <Empty title="No tasks yet">
      Submit one here, or with <code>holdfast submit -t hello -i '{'{}'}'</code>
    </Empty>
  ) : (
    <Empty title="No task matches">
      <a href={hrefOf('tasks')}>Show all tasks</a>
    </Empty>
  )

export const Tasks = () => {
  const filters = route.value.query
  const isFirst = filters['cursor'] === undefined
  const page = useResource<TaskPage>('/tasks', { query: { ...filters, limit: 50 }, ...(isFirst && { follow: 'all' }) })
  return (
    <>
      <Head title="Tasks" note={<Total filters={filters} />} />
      <div class="filters">
        <Search filters={filters} />
        <Views filters={filters} />
        <Narrow filters={filters} />
      </div>
      <Loaded of={page}>
        {({ tasks, cursor }) =>
          tasks.length === 0 ? (
            <None filters={filters} cursor={cursor} />
          ) : (
            <>
              <Panel flush>
                <table class="cards tasks">
                  <thead>
                    <tr>
                      <th scope="col">Status</th>
                      <th scope="col">Task</th>
                      <th scope="col">Queue</th>
                      <th scope="col" class="number">
                        Attempts
                      </th>
                      <th scope="col">Worker, error or tags</th>
                      <th scope="col" class="time">
                        Created
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {tasks.map((task) => (
                      <Row key={task.id} task={task} />
                    ))}
                  </tbody>
                </table>
              </Panel>
              <nav class="pager" aria-label="Pages of tasks">
                {!isFirst && <a href={withFilter(filters, 'cursor', undefined)}>Newest</a>}
                {cursor && (
                  <a class="next" href={hrefOf('tasks', { ...filters, cursor })}>
                    Older tasks
                  </a>
                )}
              </nav>
            </>
          )
        }
      </Loaded>
    </>
  )
}
