/** One queue: how it flows, its limits and who holds them, its pauses, and the workers that serve it. */
import { signal } from '@preact/signals'
import { part, post } from '../api.ts'
import { useCharts } from '../charts-read.ts'
import { shownCount } from '../counted.ts'
import { queues } from '../live.ts'
import { Action, Head, Panel } from '../parts/basics.tsx'
import { Charts } from '../parts/charts/charts.tsx'
import { ask } from '../parts/dialogs/ask.tsx'
import { Check, Field } from '../parts/field.tsx'
import { Fact, Flow, FlowTable, outOf, SECONDS } from '../parts/flow.tsx'
import { PauseNote } from '../parts/pause-note.tsx'
import { Serving } from '../parts/serving.tsx'
import { Loaded } from '../parts/states.tsx'
import { toast } from '../parts/toast.tsx'
import { askToPause, askToResume } from '../pauses.tsx'
import { useResource } from '../resource.ts'
import { hrefOf, route } from '../route.ts'
import { refusal } from '../session.ts'
import { now } from '../text/time.ts'
import { duration } from '../text/words.ts'
import type { ChartTotals, Limits, Queue, QueueDetail } from '../types.ts'

const askToLimit = (queue: string, limits: Limits | null, reload: () => void): void => {
  const fields = {
    concurrency: signal(String(limits?.concurrency ?? '')),
    perGroup: signal(String(limits?.perGroup ?? '')),
    rate: signal(limits?.rate ?? ''),
    ratePerGroup: signal(limits?.ratePerGroup ?? ''),
    burst: signal(String(limits?.burst ?? '')),
    fair: signal(limits?.fair ?? false),
  }
  ask({
    title: `Limits of ${queue}`,
    text: <p>They bind all workers within 5 seconds. An empty field sets no limit.</p>,
    Body: () => (
      <div class="fields">
        <Field label="Running" hint="over all workers" type="number" value={fields.concurrency} />
        <Field label="Running per group" type="number" value={fields.perGroup} />
        <Field label="Starts" hint="60/1m" value={fields.rate} />
        <Field label="Starts per group" hint="60/1m" value={fields.ratePerGroup} />
        <Field label="Burst" hint="starts at once" type="number" value={fields.burst} />
        <div class="wide">
          <Check label="Groups take turns" value={fields.fair} />
        </div>
      </div>
    ),
    action: 'Set the limits',
    run: async () => {
      const whole = (name: 'concurrency' | 'perGroup' | 'burst') =>
        fields[name].value === '' ? {} : { [name]: Number(fields[name].value) }
      const text = (name: 'rate' | 'ratePerGroup') =>
        fields[name].value.trim() === '' ? {} : { [name]: fields[name].value.trim() }
      const body = {
        ...whole('concurrency'),
        ...whole('perGroup'),
        ...whole('burst'),
        ...text('rate'),
        ...text('ratePerGroup'),
        ...(fields.fair.value && { fair: true }),
      }
      await post(`/queues/${part(queue)}/limit`, Object.keys(body).length === 0 ? { none: true } : body)
      toast('The limits are set')
      reload()
    },
  })
}

const STANDS = 'not shrinking at this pace'

/** At the pace of the last minutes. */
const timeToDrain = (queue: Queue, totals: ChartTotals | null | undefined): string => {
  const waiting = queue.ready
  if (waiting === 0) return 'empty'
  if (queue.paused) return 'paused'
  if (totals == null) return totals === null ? '' : STANDS
  const net = (outOf(totals) - totals.submitted) / SECONDS
  return net <= 0 ? STANDS : `empty in about ${duration((waiting / net) * 1_000)}`
}

interface QueueFlowProps {
  readonly queue: Queue
  readonly totals: ChartTotals | null | undefined
  readonly oldestReady: string | null
}

const QueueFlow = ({ queue, totals, oldestReady }: QueueFlowProps) => (
  <Flow totals={totals}>
    <Fact name="Ready" value={shownCount([queue], 'ready').text} note={timeToDrain(queue, totals)} />
    <Fact
      name="Oldest wait"
      value={oldestReady === null ? '–' : duration(Math.max(0, now.value - Date.parse(oldestReady)))}
    />
  </Flow>
)

/** '60/1m' in words. */
const perTime = (rate: unknown): string => String(rate).replace('/', ' starts per ')

const LIMIT_WORDS: readonly (readonly [name: keyof Limits, words: (value: unknown) => string])[] = [
  ['concurrency', (value) => `at most ${value} running`],
  ['perGroup', (value) => `at most ${value} running of each group`],
  ['fair', () => 'groups take turns'],
  ['rate', (value) => perTime(value)],
  ['ratePerGroup', (value) => `${perTime(value)} of each group`],
  ['burst', (value) => `${value} starts at once`],
]

const Holders = ({ detail, reload }: { readonly detail: QueueDetail; readonly reload: () => void }) => {
  const { queue, holders, isMore } = detail
  const { limits } = queue
  return (
    <Panel
      title="Limits"
      name="limits"
      aside={
        <Action
          small
          label="Change limits"
          refused={refusal('operate')}
          onClick={() => askToLimit(queue.queue, limits, reload)}
        />
      }
    >
      {limits === null ? (
        <p class="note">None. Workers run as many tasks as they have slots.</p>
      ) : (
        <ul class="tags">
          {LIMIT_WORDS.map(
            ([name, words]) =>
              limits[name] !== undefined &&
              limits[name] !== false && (
                <li class="tag" key={name}>
                  {words(limits[name])}
                </li>
              ),
          )}
        </ul>
      )}
      {holders.length > 0 && (
        <table class="holders">
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col" class="number">
                Running
              </th>
              <th scope="col">Workers</th>
            </tr>
          </thead>
          <tbody>
            {holders.map(({ group, running, workers }) => (
              <tr key={group ?? ''}>
                <th scope="row">
                  <a
                    href={hrefOf('tasks', { queue: queue.queue, status: 'running', ...(group !== null && { group }) })}
                  >
                    {group ?? 'no group'}
                  </a>
                </th>
                <td class="number">
                  {running}
                  {limits?.perGroup !== undefined && group !== null && ` of ${limits.perGroup}`}
                </td>
                <td>{workers.join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {isMore && <p class="note">More tasks are running than were read.</p>}
    </Panel>
  )
}

const Pauses = ({ queue, reload }: { readonly queue: Queue; readonly reload: () => void }) => {
  const groups = Object.entries(queue.groupPauses)
  if (queue.pause === null && groups.length === 0) return null
  return (
    <Panel title="Paused" name="pauses">
      {queue.pause && (
        <div class="paused">
          <p>The whole queue</p>
          <PauseNote pause={queue.pause} />
        </div>
      )}
      {groups.map(([group, pause]) => (
        <div class="paused" key={group}>
          <p>
            Group <b>{group}</b>{' '}
            <Action
              small
              label="Resume"
              of={`group ${group}`}
              refused={refusal('operate')}
              onClick={() => askToResume(queue.queue, reload, group)}
            />
          </p>
          <PauseNote pause={pause} />
        </div>
      ))}
    </Panel>
  )
}

export const QueuePage = () => {
  const name = route.value.rest
  const read = useResource<QueueDetail>(`/queues/${part(name)}`, { every: 4_000 })
  const live = queues.value?.find(({ queue }) => queue === name)
  const charts = useCharts({ queue: name }, '5m')
  return (
    <>
      <Head title={name} note="Queue">
        <a class="button" href={hrefOf('tasks', { queue: name })}>
          Tasks
        </a>
        {read.data &&
          (read.data.queue.paused ? (
            <Action label="Resume" refused={refusal('operate')} onClick={() => askToResume(name, read.reload)} />
          ) : (
            <Action label="Pause" refused={refusal('operate')} onClick={() => askToPause(name, read.reload)} />
          ))}
      </Head>
      <Loaded of={read}>
        {(detail) => (
          <>
            <QueueFlow
              queue={{ ...detail.queue, ...live }}
              totals={charts === null ? null : charts.queues[name]}
              oldestReady={detail.oldestReady}
            />
            <Charts queue={name} />
            <div class="columns">
              <div>
                <Pauses queue={detail.queue} reload={read.reload} />
                <Holders detail={detail} reload={read.reload} />
              </div>
              <Serving
                serves={(worker) => worker.queues.includes(name)}
                command={`holdfast worker MODULE --queue ${name}`}
              />
            </div>
            {charts && <FlowTable title="Types" one="type" of={charts.types} filter={{ queue: name }} />}
          </>
        )}
      </Loaded>
    </>
  )
}
