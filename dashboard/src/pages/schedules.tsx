/** Schedules: next slots, last task; pause, resume, trigger. */
import { part, post } from '../api.ts'
import { ask } from '../parts/ask.tsx'
import { Action, Ago, At, Head, Panel, ShortId } from '../parts/basics.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { toast } from '../parts/toast.tsx'
import { useResource } from '../resource.ts'
import { go, taskHref } from '../route.ts'
import { refusal } from '../session.ts'
import { now } from '../time.ts'
import type { Schedule, Task } from '../types.ts'
import { duration, slotTimes } from '../words.ts'

/** Each schedule needs a request for its further slots, so they are not shown for hundreds of schedules. */
const MOST_FORETOLD = 30

const timingOf = ({ cron, timezone, every, mode }: Schedule): { readonly rule: string; readonly note: string } =>
  cron === null
    ? {
        rule: `every ${duration(every ?? 0)}`,
        note: mode === 'fixed-delay' ? 'after the last run has ended' : 'on a fixed grid',
      }
    : { rule: cron, note: timezone ?? 'UTC' }

const Slots = ({ schedule, count }: { readonly schedule: Schedule; readonly count: number }) => {
  const { data } = useResource<{ readonly slots: readonly string[] }>(
    count > 1 ? `/schedules/${part(schedule.id)}/next` : null,
    { query: { count }, every: 20_000 },
  )
  const slots = data?.slots ?? (schedule.nextAt === null ? [] : [schedule.nextAt])
  return (
    <ol class="slots">
      {slotTimes(slots, now.value).map((time, i) => (
        <li key={slots[i]} title={slots[i]}>
          {time}
        </li>
      ))}
    </ol>
  )
}

const askTo = (verb: 'pause' | 'resume', { id }: Schedule, reload: () => void): void =>
  ask({
    title: verb === 'pause' ? `Pause ${id}?` : `Resume ${id}?`,
    text: (
      <p>
        {verb === 'pause'
          ? 'No slot fires until it is resumed. Its tasks are not changed.'
          : 'It fires again from its next slot on.'}
      </p>
    ),
    action: verb === 'pause' ? 'Pause the schedule' : 'Resume the schedule',
    danger: verb === 'pause',
    run: async () => {
      await post(`/schedules/${part(id)}/${verb}`)
      toast(verb === 'pause' ? `${id} is paused` : `${id} fires again`)
      reload()
    },
  })

const askToTrigger = ({ id }: Schedule): void =>
  ask({
    title: `Trigger ${id} now?`,
    text: <p>Creates one task now. Its slots stay as they are.</p>,
    action: 'Create one task',
    run: async () => {
      const task = await post<Task>(`/schedules/${part(id)}/trigger`)
      toast('Triggered')
      go(taskHref(task.id))
    },
  })

interface RowProps {
  readonly schedule: Schedule
  readonly reload: () => void
  readonly foretell: boolean
}

const Row = ({ schedule, reload, foretell }: RowProps) => {
  const { id, type, paused, nextAt, lastTaskId, lastSkipped } = schedule
  const { rule, note } = timingOf(schedule)
  return (
    <tr data-schedule={id}>
      <th scope="row">
        <b>{id}</b>
        {paused && <span class="tag warn">paused</span>}
        <span class="note">{type}</span>
      </th>
      <td data-label="When">
        <code>{rule}</code>
        <span class="note">{note}</span>
      </td>
      <td data-label="Next" class="next-runs">
        {paused || nextAt === null ? (
          <span class="note">none</span>
        ) : (
          <>
            <b>
              <Ago at={nextAt} />
            </b>
            <Slots schedule={schedule} count={foretell ? 4 : 1} />
          </>
        )}
      </td>
      <td data-label="Last">
        {lastTaskId ? (
          <a href={taskHref(lastTaskId)} data-row>
            <ShortId id={lastTaskId} />
          </a>
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
          onClick={() => askTo(paused ? 'resume' : 'pause', schedule, reload)}
        />
      </td>
    </tr>
  )
}

export const Schedules = () => {
  const schedules = useResource<{ readonly schedules: readonly Schedule[] }>('/schedules', { every: 5_000 })
  return (
    <>
      <Head title="Schedules" note="Times are those of your browser." />
      <Loaded of={schedules}>
        {({ schedules: known }) =>
          known.length === 0 ? (
            <Empty title="Nothing recurs">
              Create a schedule with <code>holdfast schedule create nightly --cron '0 3 * * *' -t report</code>
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
                    <th scope="col">
                      <span class="unseen">Actions</span>
                    </th>
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
