/** The overview: counts, three charts, the queues, and recent changes. */
import { COUNTED, shownCount, useQueues } from '../counted.ts'
import { depths, recent, ticks } from '../live.ts'
import { At, Head, Panel, ShortId } from '../parts/basics.tsx'
import { Chart } from '../parts/chart.tsx'
import { QueueBar } from '../parts/queue-bar.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { hrefOf, taskHref } from '../route.ts'
import { now } from '../time.ts'
import type { Queue } from '../types.ts'
import { duration, happened, short } from '../words.ts'

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

const Charts = () => {
  const past = ticks.value
  const times = past.map(({ at }) => Date.parse(at))
  const moves = (...names: string[]) =>
    past.map(({ moves: counted }) => names.reduce((so, name) => so + (counted[name] ?? 0), 0))
  const deep = depths.value
  const until = Math.max(now.value, times.at(-1) ?? 0)
  return (
    <div class="charts">
      <Chart
        label="Throughput per second"
        lines={[
          { label: 'completed', colour: 'accent', filled: true },
          { label: 'submitted', colour: 'view-ready', dashed: true },
          { label: 'failed', colour: 'view-dead' },
        ]}
        times={times}
        values={[moves('complete'), moves('submit'), moves('fail', 'time-out', 'lose-lease')]}
        format={(value) => short(Math.round(value * 10) / 10)}
        until={until}
      />
      <Chart
        label="Latency, 95th percentile"
        lines={[
          { label: 'wait', colour: 'view-retrying', filled: true },
          { label: 'run', colour: 'view-scheduled' },
        ]}
        times={times}
        values={[past.map(({ wait }) => wait?.p95 ?? null), past.map(({ duration: run }) => run?.p95 ?? null)]}
        format={duration}
        until={until}
      />
      <Chart
        label="Depth"
        lines={[
          { label: 'ready', colour: 'view-ready', filled: true },
          { label: 'running', colour: 'accent' },
          { label: 'later', colour: 'view-scheduled', dashed: true },
        ]}
        times={deep.map(({ at }) => at)}
        values={[
          deep.map(({ ready }) => ready),
          deep.map(({ running }) => running),
          deep.map(({ scheduled, retrying }) => scheduled + retrying),
        ]}
        format={(value) => short(Math.round(value))}
        until={Math.max(until, deep.at(-1)?.at ?? 0)}
      />
    </div>
  )
}

const QueueList = ({ counted }: { readonly counted: readonly Queue[] }) =>
  counted.length === 0 ? (
    <Empty title="No queues yet">A queue appears when the first task is submitted to it.</Empty>
  ) : (
    <ul class="queue-list">
      {counted.slice(0, 12).map((queue) => (
        <li key={queue.queue}>
          <a href={hrefOf('tasks', { queue: queue.queue })} data-row>
            <span class="name">{queue.queue}</span>
            {queue.paused && <span class="tag warn">paused</span>}
            <span class="note">
              {shownCount([queue], 'ready').text} ready · {shownCount([queue], 'running').text} running
            </span>
            <QueueBar queue={queue} />
          </a>
        </li>
      ))}
    </ul>
  )

const Recent = () =>
  recent.value.length === 0 ? (
    <Empty title="Quiet">New changes appear here.</Empty>
  ) : (
    <ol class="recent">
      {recent.value.slice(0, 10).map((change) => (
        <li key={`${change.id}/${change.n}`} data-to={change.to} data-move={change.move}>
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
              <Panel title="Just now" name="recent" flush aside={<a href={hrefOf('tasks')}>All tasks</a>}>
                <Recent />
              </Panel>
            </div>
          </>
        )}
      </Loaded>
    </>
  )
}
