/** One schedule: its plan, its next slots, and the results of the last twenty. */
import { part } from '../api.ts'
import { Action, Ago, At, Fact, Head, Panel } from '../parts/basics.tsx'
import { askForSchedule, askToDelete, askToSwitch, askToTrigger } from '../parts/dialogs/schedule-actions.tsx'
import { Json } from '../parts/json.tsx'
import { Next, Rule } from '../parts/schedule-timing.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { useResource } from '../resource.ts'
import { hrefOf, route, taskHref } from '../route.ts'
import { refusal } from '../session.ts'
import type { PastSlot, Schedule } from '../types.ts'

const FORETOLD = 10

const CATCH_UP: Readonly<Record<string, string>> = {
  skip: 'are left out',
  last: 'fire once',
  all: 'fire all, one after another',
}

const WHY_NOT = {
  overlap: 'Skipped: the task before it had not ended',
  missed: 'Skipped: nothing fired it in time',
} as const

const Past = ({ past }: { readonly past: readonly PastSlot[] }) => (
  <Panel title="What fired" name="past" flush aside={<span class="note">the last 20 slots</span>}>
    {past.length === 0 ? (
      <Empty title="Nothing yet">A slot appears here when it has passed.</Empty>
    ) : (
      <ol class="past-slots">
        {past.toReversed().map(({ slot, taskId, reason }) => (
          <li key={slot} data-fired={taskId !== undefined}>
            <At at={slot} />
            {taskId !== undefined ? (
              <a href={taskHref(taskId)} data-row>
                <code>{taskId}</code>
              </a>
            ) : (
              <span>{WHY_NOT[reason ?? 'missed']}</span>
            )}
            <span class="note">
              <Ago at={slot} />
            </span>
          </li>
        ))}
      </ol>
    )}
  </Panel>
)

const Plan = ({ schedule }: { readonly schedule: Schedule }) => (
  <Panel title="Plan" name="plan">
    <dl class="facts">
      <Fact name="When">
        <Rule schedule={schedule} />
      </Fact>
      <Fact name="Next">
        <Next schedule={schedule} count={FORETOLD} />
      </Fact>
      <Fact name="Type">
        <a href={hrefOf(`types/${encodeURIComponent(schedule.type)}`)}>{schedule.type}</a>
      </Fact>
      <Fact name="Queue">
        <a href={hrefOf(`queues/${encodeURIComponent(schedule.options.queue ?? 'default')}`)}>
          {schedule.options.queue ?? 'default'}
        </a>
      </Fact>
      <Fact name="Overlap">
        {schedule.overlap === 'allow'
          ? 'a slot fires also while the last task has not ended'
          : 'a slot is left out while the last task has not ended'}
      </Fact>
      <Fact name="Missed slots">{CATCH_UP[schedule.catchUp] ?? schedule.catchUp}</Fact>
      <Fact name="Changed">
        <At at={schedule.updatedAt} />
      </Fact>
    </dl>
  </Panel>
)

export const SchedulePage = () => {
  const id = route.value.rest
  const read = useResource<Schedule>(`/schedules/${part(id)}`, { every: 4_000 })
  const refused = refusal('operate')
  const of = read.data
  return (
    <>
      <Head
        title={
          <>
            {id} {of?.paused && <span class="tag warn">paused</span>}
          </>
        }
        note="Schedule"
      >
        {of && (
          <>
            <Action label="Trigger" refused={refused} onClick={() => askToTrigger(of)} />
            <Action
              label={of.paused ? 'Resume' : 'Pause'}
              refused={refused}
              onClick={() => askToSwitch(of, read.reload)}
            />
            <Action label="Change" refused={refused} onClick={() => askForSchedule(of, read.reload)} />
            <Action label="Delete" tone="danger" refused={refused} onClick={() => askToDelete(of)} />
          </>
        )}
      </Head>
      <Loaded of={read}>
        {(schedule) => (
          <div class="columns">
            <div>
              <Plan schedule={schedule} />
              <Panel title="Input" name="input">
                {schedule.payloads === 'withheld' ? (
                  <p class="note">Your token does not allow you to see payloads.</p>
                ) : (
                  <Json value={schedule.input} />
                )}
              </Panel>
            </div>
            <Past past={schedule.past} />
          </div>
        )}
      </Loaded>
    </>
  )
}
