/** Schedules: next slots, last task; create, pause, resume, trigger. */
import { Action, ActionsHead, Ago, At, Head, Panel, ShortId } from '../parts/basics.tsx'
import { askForSchedule, askToSwitch, askToTrigger, scheduleHref } from '../parts/dialogs/schedule-actions.tsx'
import { Next, Rule } from '../parts/schedule-timing.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { useResource } from '../resource.ts'
import { taskHref } from '../route.ts'
import { refusal } from '../session.ts'
import type { Schedule } from '../types.ts'

/** Each schedule needs a request for its further slots, so they are not shown for hundreds of schedules. */
const MOST_FORETOLD = 30

interface RowProps {
  readonly schedule: Schedule
  readonly reload: () => void
  readonly foretell: boolean
}

const Row = ({ schedule, reload, foretell }: RowProps) => {
  const { id, type, paused, lastTaskId, lastSkipped, past } = schedule
  const last = past.findLast(({ taskId }) => taskId === lastTaskId)
  return (
    <tr data-schedule={id}>
      <th scope="row">
        <a href={scheduleHref(id)} data-row>
          {id}
        </a>
        {paused && <span class="tag warn">paused</span>}
        <span class="note">{type}</span>
      </th>
      <td data-label="When">
        <Rule schedule={schedule} />
      </td>
      <td data-label="Next" class="next-runs">
        <Next schedule={schedule} count={foretell ? 4 : 1} />
      </td>
      <td data-label="Last">
        {lastTaskId ? (
          <>
            <a href={taskHref(lastTaskId)}>
              <ShortId id={lastTaskId} />
            </a>
            {last && (
              <span class="note">
                <Ago at={last.slot} />
              </span>
            )}
          </>
        ) : (
          <span class="note">never</span>
        )}
        {lastSkipped && (
          <span class="note">
            skipped <At at={lastSkipped.slot} />: {lastSkipped.reason}
          </span>
        )}
      </td>
      <td class="acts">
        <Action small label="Trigger" of={id} refused={refusal('operate')} onClick={() => askToTrigger(schedule)} />
        <Action
          small
          label={paused ? 'Resume' : 'Pause'}
          of={id}
          refused={refusal('operate')}
          onClick={() => askToSwitch(schedule, reload)}
        />
      </td>
    </tr>
  )
}

export const Schedules = () => {
  const schedules = useResource<{ readonly schedules: readonly Schedule[] }>('/schedules', { every: 5_000 })
  return (
    <>
      <Head title="Schedules" note="Each slot creates one task. Slots of a calendar are shown in its own timezone.">
        <Action
          label="New schedule"
          refused={refusal('operate')}
          onClick={() => askForSchedule(null, schedules.reload)}
        />
      </Head>
      <Loaded of={schedules}>
        {({ schedules: known }) =>
          known.length === 0 ? (
            <Empty title="Nothing recurs">
              Create a schedule here, or with <code>holdfast schedule create nightly --cron '0 3 * * *' -t report</code>
            </Empty>
          ) : (
            <Panel flush>
              <table class="cards">
                <thead>
                  <tr>
                    <th scope="col">Schedule</th>
                    <th scope="col">When</th>
                    <th scope="col">Next</th>
                    <th scope="col">Last task</th>
                    <ActionsHead />
                  </tr>
                </thead>
                <tbody>
                  {known.map((schedule) => (
                    <Row
                      key={schedule.id}
                      schedule={schedule}
                      reload={schedules.reload}
                      foretell={known.length <= MOST_FORETOLD}
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
