/** The table of the list of tasks: one row each, with a tick to choose it. */
import type { Ref } from 'preact'
import { type Filters, withFilter } from '../filters.ts'
import { hrefOf, taskHref } from '../route.ts'
import { now } from '../text/time.ts'
import { duration } from '../text/words.ts'
import type { Task, TaskPage } from '../types.ts'
import { Ago, Pill, ShortId } from './basics.tsx'
import { PercentBar } from './charts/percent-bar.tsx'

const lengthOf = ({ status, startedAt, completedAt, lease }: Task): number | null => {
  if (status === 'running' && lease !== null) return now.value - Date.parse(lease.claimedAt)
  return startedAt === null || completedAt === null ? null : Date.parse(completedAt) - Date.parse(startedAt)
}

/** The longest first; the API sorts by creation only. */
const sorted = (tasks: readonly Task[], by: string | undefined): readonly Task[] =>
  by === 'ran' ? tasks.toSorted((a, b) => (lengthOf(b) ?? -1) - (lengthOf(a) ?? -1)) : tasks

interface RowProps {
  readonly task: Task
  readonly isChosen: boolean
  readonly onChoose: (isChosen: boolean) => void
}

const Row = ({ task, isChosen, onChoose }: RowProps) => {
  const length = lengthOf(task)
  return (
    <tr data-task={task.id} aria-selected={isChosen}>
      <td class="tick">
        <input
          type="checkbox"
          checked={isChosen}
          aria-label={`Choose ${task.type} ${task.id.slice(-8)}`}
          onChange={(event) => onChoose(event.currentTarget.checked)}
        />
      </td>
      <td class="state">
        <Pill view={task.view} />
      </td>
      <th scope="row">
        <a href={taskHref(task.id)} data-row>
          {task.type}
        </a>
        <ShortId id={task.id} />
      </th>
      <td data-label="Queue">
        <a class="plain" href={hrefOf(`queues/${encodeURIComponent(task.queue)}`)}>
          {task.queue}
        </a>
      </td>
      <td class="number" data-label="Attempts">
        {task.attempts}
      </td>
      <td class="what" data-label="Last">
        {task.lease ? (
          <>
            <span class="note">{task.lease.workerId}</span>
            <PercentBar progress={task.progress} />
          </>
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
      <td class="time" data-label="Ran">
        {length === null ? '–' : duration(Math.max(0, length))}
      </td>
      <td class="time" data-label="Created">
        <Ago at={task.createdAt} />
      </td>
    </tr>
  )
}

export const idsOf = ({ tasks }: Pick<TaskPage, 'tasks'>): readonly string[] => tasks.map(({ id }) => id)

interface TableProps {
  readonly tasks: readonly Task[]
  readonly filters: Filters
  readonly chosen: ReadonlySet<string>
  readonly choose: (ids: readonly string[], isChosen: boolean) => void
  readonly list: Ref<HTMLTableElement>
}

export const TaskTable = ({ tasks, filters, chosen, choose, list }: TableProps) => {
  const { by, order } = filters
  return (
    <table class="cards tasks" ref={list}>
      <thead>
        <tr>
          <th scope="col" class="tick">
            <input
              type="checkbox"
              aria-label="Choose all on this page"
              checked={tasks.every(({ id }) => chosen.has(id))}
              onChange={(event) => choose(idsOf({ tasks }), event.currentTarget.checked)}
            />
          </th>
          <th scope="col">Status</th>
          <th scope="col">Task</th>
          <th scope="col">Queue</th>
          <th scope="col" class="number">
            Attempts
          </th>
          <th scope="col">Worker, error or tags</th>
          <th scope="col" class="time">
            <a href={withFilter(filters, 'by', by === 'ran' ? undefined : 'ran')}>Ran{by === 'ran' && ' ↓'}</a>
          </th>
          <th scope="col" class="time">
            <a href={withFilter(filters, 'order', order === 'oldest' ? undefined : 'oldest')}>
              Created {order === 'oldest' ? '↑' : '↓'}
            </a>
          </th>
        </tr>
      </thead>
      <tbody>
        {sorted(tasks, by).map((task) => (
          <Row
            key={task.id}
            task={task}
            isChosen={chosen.has(task.id)}
            onChoose={(isChosen) => choose([task.id], isChosen)}
          />
        ))}
      </tbody>
    </table>
  )
}
