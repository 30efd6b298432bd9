/** One type of task: how it flows, in which queues, and the workers that have a handler for it. */
import { useCharts } from '../charts-read.ts'
import { Head } from '../parts/basics.tsx'
import { Charts } from '../parts/charts/charts.tsx'
import { Fact, Flow, FlowTable } from '../parts/flow.tsx'
import { Serving } from '../parts/serving.tsx'
import { useResource } from '../resource.ts'
import { hrefOf, route } from '../route.ts'
import { now } from '../text/time.ts'
import { duration, number } from '../text/words.ts'
import type { Count, TaskPage, WorkerInfo } from '../types.ts'

/** The longest wait is searched among this many tasks: the oldest task may have become ready last, after a retry. */
const LOOKED_AT = 20

const useCount = (type: string, status: string): string => {
  const { data } = useResource<Count>('/tasks/count', { query: { type, status }, every: 5_000 })
  return data === null ? '–' : `${number(data.count)}${data.capped ? '+' : ''}`
}

export const TypePage = () => {
  const type = route.value.rest
  const read = useCharts({ type }, '5m')
  const ready = useCount(type, 'ready')
  const oldest = useResource<TaskPage>('/tasks', {
    query: { type, status: 'ready', order: 'oldest', limit: LOOKED_AT },
    every: 5_000,
  }).data?.tasks.reduce((least, { availableAt }) => Math.min(least, Date.parse(availableAt)), Number.POSITIVE_INFINITY)
  const serves = ({ types }: WorkerInfo): boolean => types.includes(type) || types.includes('*')
  return (
    <>
      <Head title={type} note="Type">
        <a class="button" href={hrefOf('tasks', { type })}>
          Tasks
        </a>
        <a class="button" href={hrefOf('tasks', { type, status: 'dead' })}>
          Dead letters
        </a>
      </Head>
      <Flow totals={read === null ? null : read.types[type]}>
        <Fact name="Ready" value={ready} />
        <Fact name="Oldest wait" value={Number.isFinite(oldest) ? duration(Math.max(0, now.value - oldest!)) : '–'} />
      </Flow>
      <Charts type={type} />
      <div class="columns">
        {read && <FlowTable title="Queues" one="queue" of={read.queues} filter={{ type }} />}
        <Serving serves={serves} command="holdfast worker MODULE" />
      </div>
    </>
  )
}
