/** Repairs by an operator: dates written by a fast clock, and a store that was restored from a backup. */

import { HoldfastError } from '../../core/errors.ts'
import { MOST_AHEAD } from '../../core/host/host-clock.ts'
import { isDeleted, type ScheduleRecord } from '../../core/schedules/schedule.ts'
import { SCHEDULE } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import type { ClockRepaired } from '../../store/store.ts'
import { editDocument } from '../documents.ts'
import { readSchedule } from '../schedules/slot-runner.ts'
import type { Session } from '../session.ts'

/** How many records of each kind had a date in the future. */
export interface ClockRepair extends ClockRepaired {
  readonly schedules: number
}

/** Gives the store a new identity, which stops processes that still use the old one. Resolves with the number of tasks that may run again. */
export const acceptRestore = async ({ store }: Session): Promise<number> => {
  if (store.acceptRestore !== undefined) return store.acceptRestore()
  throw new HoldfastError('INVALID_OPTION', `${store.address} cannot tell a restored store from any other`)
}

/** Repairs the dates of tasks and the cursors of schedules. */
export const repairClock = async (session: Session): Promise<ClockRepair> => {
  const { store } = session
  if (store.repairClock === undefined)
    throw new HoldfastError('INVALID_OPTION', `${store.address} has a clock of its own: there is nothing to repair`)
  const repaired = await store.repairClock()
  const now = session.clock.wall()
  const names = (await store.documents.list(SCHEDULE)).map(({ name }) => name)
  let schedules = 0
  for (const name of names) {
    let isAhead = false
    await editDocument(session, name, (before) => {
      const record = before === null ? null : readSchedule({ name, value: before, version: 1 })
      isAhead = record !== null && !isDeleted(record) && record.cursor > now + MOST_AHEAD
      return isAhead ? JSON.stringify(fromNow(record as ScheduleRecord, now)) : before
    })
    if (isAhead) schedules++
  }
  return { ...repaired, schedules }
}

/** Slots from now on fire again. The grid stays unless it starts in the future. */
const fromNow = ({ lastEnd, ...record }: ScheduleRecord, now: Instant): ScheduleRecord => ({
  ...record,
  cursor: now,
  origin: Math.min(record.origin, now),
  firing: null,
  createdAt: Math.min(record.createdAt, now),
  updatedAt: now,
  ...(lastEnd === undefined ? null : { lastEnd: { ...lastEnd, at: Math.min(lastEnd.at, now) } }),
})
