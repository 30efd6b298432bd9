/** Tasks by page: searched, filtered, sorted; one action on many. */
import { useSignal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { get } from '../api.ts'
import { askForAll, askForChosen, BULK_ACTIONS, BULK_WORDS } from '../bulk.tsx'
import { type Filters, lastFilters, queryOf, withFilter } from '../filters.ts'
import { Action, Head, Panel } from '../parts/basics.tsx'
import { FilterBar, Views } from '../parts/filter-bar.tsx'
import { ICONS } from '../parts/icons.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { StillBar } from '../parts/still-bar.tsx'
import { idsOf, TaskTable } from '../parts/task-table.tsx'
import { useResource } from '../resource.ts'
import { go, hrefOf, route, taskHref } from '../route.ts'
import { refusal } from '../session.ts'
import { useStill } from '../still.ts'
import { number } from '../text/words.ts'
import type { Count, Task, TaskPage } from '../types.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A look for a key that takes longer ends in a search, which says what is wrong. */
const LONGEST_LOOK = 5_000

/** An id or a key opens the task, name=value filters by tag, anything else is searched. */
const find = async (text: string, filters: Filters): Promise<void> => {
  const bare = text.replace(/^…/, '')
  if (UUID.test(bare)) return go(taskHref(bare.toLowerCase()))
  if (/^[^=\s]+=/.test(bare)) return go(withFilter(filters, 'tag', bare))
  const from = route.value
  const task = await get<Task>('/tasks/by-key', { key: bare }, LONGEST_LOOK).catch(() => null)
  if (route.value === from) go(task === null ? withFilter(filters, 'text', bare) : taskHref(task.id))
}

const Search = ({ filters }: { readonly filters: Filters }) => {
  const text = useSignal(filters['text'] ?? '')
  // Before the browser paints: an effect after it would clear what was typed into the first frame.
  useLayoutEffect(() => {
    text.value = filters['text'] ?? ''
  }, [filters['text']])
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault()
        const wanted = text.value.trim()
        if (wanted === '') go(withFilter(filters, 'text', undefined))
        else void find(wanted, filters)
      }}
    >
      <label>
        <span class="unseen">Search by id, key, type, error or tag</span>
        {ICONS.search}
        <input
          type="search"
          placeholder="Id, key, part of a type or error, tag=value"
          value={text.value}
          spellcheck={false}
          onInput={(event) => {
            text.value = event.currentTarget.value
          }}
        />
      </label>
    </form>
  )
}

/** A search is not counted. */
const Total = ({ query }: { readonly query: Filters }) => {
  const { cursor: _, order: __, ...counted } = query
  const isSearch = counted['text'] !== undefined || counted['error'] !== undefined
  const { data } = useResource<Count>(isSearch ? null : '/tasks/count', { query: counted, every: 10_000 })
  return data === null ? null : (
    <>
      {number(data.count)}
      {data.capped && '+'} {data.count === 1 ? 'task' : 'tasks'}
    </>
  )
}

const None = ({ filters, cursor }: { readonly filters: Filters; readonly cursor: string | null }) =>
  cursor !== null ? (
    <Empty title={`None among the ${filters['order'] === 'oldest' ? 'oldest' : 'newest'}`}>
      <a href={hrefOf('tasks', { ...filters, cursor })}>
        Search {filters['order'] === 'oldest' ? 'newer' : 'older'} tasks
      </a>
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

const Pager = ({ filters, cursor }: { readonly filters: Filters; readonly cursor: string | null }) => (
  <nav class="pager" aria-label="Pages of tasks">
    {filters['cursor'] !== undefined && <a href={withFilter(filters, 'cursor', undefined)}>First page</a>}
    {cursor && (
      <a class="next" href={hrefOf('tasks', { ...filters, cursor })}>
        {filters['order'] === 'oldest' ? 'Newer tasks' : 'Older tasks'}
      </a>
    )}
  </nav>
)

export const Tasks = () => {
  const filters = route.value.query
  const { by } = filters
  const chosen = useSignal<ReadonlySet<string>>(new Set())
  const isFirst = filters['cursor'] === undefined
  const asked = queryOf(filters)
  const query = { ...asked, limit: 50 }
  // A search reads many tasks: it is not repeated for each change.
  const isSearch = filters['text'] !== undefined || filters['error'] !== undefined
  const page = useResource<TaskPage>('/tasks', { query, ...(isFirst && !isSearch && { follow: 'all' as const }) })
  const still = useStill(page.data, { key: JSON.stringify(query), idsOf, isChosen: chosen.value.size > 0 })
  const key = JSON.stringify(filters)
  useLayoutEffect(() => {
    chosen.value = new Set()
    lastFilters.value = filters
  }, [key])
  const refused = refusal('operate')
  const { cursor: _, order, ...matching } = asked
  const done = (): void => {
    chosen.value = new Set()
    still.showNext()
    page.reload()
  }
  const choose = (ids: readonly string[], isChosen: boolean): void => {
    const next = new Set(chosen.value)
    for (const id of ids) {
      if (isChosen) next.add(id)
      else next.delete(id)
    }
    chosen.value = next
  }
  return (
    <>
      <Head title="Tasks" note={<Total query={asked} />} />
      <div class="filters">
        <Search filters={filters} />
        <Views filters={filters} />
        <FilterBar filters={filters} />
      </div>
      <Loaded of={{ ...page, data: still.shown }}>
        {({ tasks, cursor }) =>
          tasks.length === 0 ? (
            <None filters={filters} cursor={cursor} />
          ) : (
            <>
              <Panel
                title={
                  chosen.value.size > 0
                    ? `${number(chosen.value.size)} chosen`
                    : `${order === 'oldest' ? 'Oldest first' : 'Newest first'}${by === 'ran' ? ', this page by run time' : ''}`
                }
                flush
                aside={
                  chosen.value.size > 0 ? (
                    <span class="bulk">
                      {BULK_ACTIONS.map((action) => (
                        <Action
                          small
                          key={action}
                          label={BULK_WORDS[action]}
                          of="the chosen tasks"
                          tone={action === 'delete' ? 'danger' : 'plain'}
                          refused={refused}
                          onClick={() => askForChosen(action, [...chosen.value], done)}
                        />
                      ))}
                    </span>
                  ) : (
                    <span class="bulk">
                      {isFirst && !isSearch && <StillBar of={still} one="task" />}
                      <Action
                        small
                        label="All that match…"
                        refused={refused}
                        onClick={() => askForAll(matching, done)}
                      />
                    </span>
                  )
                }
              >
                <TaskTable tasks={tasks} filters={filters} chosen={chosen.value} choose={choose} list={still.list} />
              </Panel>
              <Pager filters={filters} cursor={cursor} />
            </>
          )
        }
      </Loaded>
    </>
  )
}
