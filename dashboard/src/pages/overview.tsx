/** The overview: counts, three charts, the queues, and recent changes. */
import { COUNTED, shownCount, useQueues } from '../counted.ts'
import { recent } from '../live.ts'
import { At, Head, Panel, ShortId } from '../parts/basics.tsx'
import { Charts } from '../parts/charts/charts.tsx'
import { mostOf, QueueBar, QueueLegend } from '../parts/charts/queue-bar.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { StillBar } from '../parts/still-bar.tsx'
import { hrefOf, taskHref } from '../route.ts'
import { type Still, useStill } from '../still.ts'
import { happened } from '../text/words.ts'
import type { Change, Queue } from '../types.ts'

const Tiles = ({ counted }: { readonly counted: readonly Queue[] }) => (
  <ul class="tiles">
    {COUNTED.map(([name, label, view]) => {
      const { text, title } = shownCount(counted, name)
      return (
        <li key={name}>
          <a href={view === 'dead' ? hrefOf('dead') : hrefOf('tasks', { status: view })} data-view={view}>
            <span>{label}</span>
            <b title={title} data-count={name}>
              {text}
            </b>
          </a>
        </li>
      )
    })}
  </ul>
)

const QueueList = ({ counted }: { readonly counted: readonly Queue[] }) => {
  const most = mostOf(counted)
  return counted.length === 0 ? (
    <Empty title="No queues yet">A queue appears when the first task is submitted to it.</Empty>
  ) : (
    <>
      <QueueLegend />
      <ul class="queue-list">
        {counted.slice(0, 12).map((queue) => (
          <li key={queue.queue}>
            <a href={hrefOf(`queues/${encodeURIComponent(queue.queue)}`)} data-row>
              <span class="name">{queue.queue}</span>
              {queue.paused && <span class="tag warn">paused</span>}
              <span class="note">
                {shownCount([queue], 'ready').text} ready · {shownCount([queue], 'running').text} running
              </span>
              <QueueBar queue={queue} most={most} />
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}

const keyOf = ({ id, n }: Change): string => `${id}/${n}`

const Recent = () => {
  const still = useStill(recent.value, { key: '', idsOf: (changes) => changes.map(keyOf) })
  return (
    <Panel
      title="Just now"
      name="recent"
      flush
      aside={
        <>
          <StillBar of={still} one="change" />
          <a href={hrefOf('tasks')}>All tasks</a>
        </>
      }
    >
      <RecentList changes={still.shown ?? []} list={still.list} />
    </Panel>
  )
}

const RecentList = ({
  changes,
  list,
}: {
  readonly changes: readonly Change[]
  readonly list: Still<unknown>['list']
}) =>
  changes.length === 0 ? (
    <Empty title="Quiet">New changes appear here.</Empty>
  ) : (
    <ol class="recent" ref={list}>
      {changes.slice(0, 10).map((change) => (
        <li key={keyOf(change)} data-to={change.to} data-move={change.move}>
          <a href={taskHref(change.id)} data-row>
            <span class="what">
              {happened(change)} <b>{change.type}</b>
            </span>
            <ShortId id={change.id} />
            <span class="note">
              <At at={change.at} />
            </span>
          </a>
        </li>
      ))}
    </ol>
  )

export const Overview = () => {
  const stats = useQueues('/stats')
  return (
    <>
      <Head title="Overview" />
      <Loaded of={stats}>
        {({ queues: counted }) => (
          <>
            <Tiles counted={counted} />
            <Charts />
            <div class="columns">
              <Panel title="Queues" flush aside={<a href={hrefOf('queues')}>All queues</a>}>
                <QueueList counted={counted} />
              </Panel>
              <Recent />
            </div>
          </>
        )}
      </Loaded>
    </>
  )
}
