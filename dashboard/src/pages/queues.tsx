/** Every queue with its counts; pause and resume. */
import { useCharts } from '../charts-read.ts'
import { COUNTED, shownCount, useQueues } from '../counted.ts'
import { Action, ActionsHead, Head, Panel } from '../parts/basics.tsx'
import { mostOf, QueueBar, QueueLegend } from '../parts/charts/queue-bar.tsx'
import { FlowTable, outOf, SECONDS } from '../parts/flow.tsx'
import { PauseNote } from '../parts/pause-note.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { askToPause, askToResume } from '../pauses.tsx'
import { hrefOf } from '../route.ts'
import { refusal } from '../session.ts'
import { plural, rate } from '../text/words.ts'
import type { ChartTotals, Queue } from '../types.ts'

interface RowProps {
  readonly queue: Queue
  readonly totals: ChartTotals | undefined
  readonly most: number
  readonly reload: () => void
}

const Row = ({ queue, totals, most, reload }: RowProps) => {
  const name = queue.queue
  return (
    <tr data-queue={name}>
      <th scope="row">
        <a href={hrefOf(`queues/${encodeURIComponent(name)}`)} data-row>
          {name}
        </a>
        {queue.paused && <span class="tag warn">paused</span>}
        {Object.keys(queue.groupPauses).length > 0 && (
          <span class="tag warn">{plural(Object.keys(queue.groupPauses).length, 'group')} paused</span>
        )}
        {queue.limits && <span class="tag">limited</span>}
        {queue.pause && <PauseNote pause={queue.pause} />}
        <QueueBar queue={queue} most={most} />
      </th>
      <td class="number" data-label="In / out">
        {totals === undefined ? (
          <span class="note">–</span>
        ) : (
          `${rate(totals.submitted / SECONDS)} / ${rate(outOf(totals) / SECONDS)}`
        )}
      </td>
      {COUNTED.map(([column, label, view]) => {
        const { text, title } = shownCount([queue], column)
        return (
          <td key={column} class="number" data-label={label}>
            <a
              href={hrefOf('tasks', { queue: name, status: view })}
              class={queue[column] === 0 ? 'none' : ''}
              title={title}
            >
              {text}
            </a>
          </td>
        )
      })}
      <td class="acts">
        {queue.paused ? (
          <Action
            small
            label="Resume"
            of={name}
            refused={refusal('operate')}
            onClick={() => askToResume(name, reload)}
          />
        ) : (
          <Action small label="Pause" of={name} refused={refusal('operate')} onClick={() => askToPause(name, reload)} />
        )}
      </td>
    </tr>
  )
}

export const Queues = () => {
  const read = useQueues('/queues')
  const charts = useCharts({}, '5m')
  const totals = charts?.queues
  return (
    <>
      <Head
        title="Queues"
        note="Counts marked + are lower bounds. In and out are tasks per second over the last 5 minutes."
      />
      <Loaded of={read}>
        {({ queues: counted }) =>
          counted.length === 0 ? (
            <Empty title="No queues yet">A queue appears when the first task is submitted to it.</Empty>
          ) : (
            <Panel flush>
              <QueueLegend />
              <table class="cards">
                <thead>
                  <tr>
                    <th scope="col">Queue</th>
                    <th scope="col" class="number" title="Tasks per second, over the last 5 minutes">
                      In / out
                    </th>
                    {COUNTED.map(([name, label]) => (
                      <th scope="col" class="number" key={name}>
                        {label}
                      </th>
                    ))}
                    <ActionsHead />
                  </tr>
                </thead>
                <tbody>
                  {counted.map((queue) => (
                    <Row
                      key={queue.queue}
                      queue={queue}
                      totals={totals?.[queue.queue]}
                      most={mostOf(counted)}
                      reload={read.reload}
                    />
                  ))}
                </tbody>
              </table>
            </Panel>
          )
        }
      </Loaded>
      {charts && Object.keys(charts.types).length > 0 && <FlowTable title="Types" one="type" of={charts.types} />}
    </>
  )
}
