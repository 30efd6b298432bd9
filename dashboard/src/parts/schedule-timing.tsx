/** When a schedule fires: its rule, and its next slots in its own timezone. */

import { part } from '../api.ts'
import { useResource } from '../resource.ts'
import { taskHref } from '../route.ts'
import { now } from '../text/time.ts'
import { duration, slotTimes } from '../text/words.ts'
import { isUtc } from '../text/zone.ts'
import type { Schedule } from '../types.ts'
import { Ago } from './basics.tsx'

export const Rule = ({ schedule: { cron, timezone, every, mode } }: { readonly schedule: Schedule }) =>
  cron === null ? (
    <>
      <b class="rule">every {duration(every ?? 0)}</b>
      <span class="note">{mode === 'fixed-delay' ? 'after the last run has ended' : 'at a fixed rate'}</span>
    </>
  ) : (
    <>
      <code class="rule">{cron}</code>
      <span class="note">{timezone ?? 'UTC'}</span>
    </>
  )

const Slots = ({ schedule, count }: { readonly schedule: Schedule; readonly count: number }) => {
  const { data } = useResource<{ readonly slots: readonly string[] }>(
    count > 1 ? `/schedules/${part(schedule.id)}/next` : null,
    { query: { count }, every: 20_000 },
  )
  const slots = data?.slots ?? (schedule.nextAt === null ? [] : [schedule.nextAt])
  const zone = schedule.cron === null ? null : (schedule.timezone ?? 'UTC')
  return (
    <>
      <ol class="slots">
        {slotTimes(slots, now.value, zone).map((time, i) => (
          <li key={slots[i]} title={slots[i]}>
            {time}
          </li>
        ))}
      </ol>
      <span class="note">{zone === null ? (isUtc.value ? 'UTC' : 'local time') : zone}</span>
    </>
  )
}

interface NextProps {
  readonly schedule: Schedule
  readonly count: number
}

export const Next = ({ schedule, count }: NextProps) => {
  const { paused, nextAt, mode, every, lastTaskId } = schedule
  if (paused) return <span class="note">none while it is paused</span>
  if (nextAt === null)
    return mode === 'fixed-delay' && lastTaskId !== null ? (
      <span class="note">
        {duration(every ?? 0)} after <a href={taskHref(lastTaskId)}>its task</a> has ended
      </span>
    ) : (
      <span class="note">none</span>
    )
  return (
    <>
      <b>
        <Ago at={nextAt} />
      </b>
      {/* Where a later one lies depends on how long the next task runs. */}
      <Slots schedule={schedule} count={mode === 'fixed-delay' ? 1 : count} />
    </>
  )
}
