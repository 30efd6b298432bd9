/** Rules across tasks: a token is issued once, a key has one task, and a slot of a schedule has one task. */
import { dueSlots } from '../../core/schedules/recurrence.ts'
import { recurrenceOf, type ScheduleRecord } from '../../core/schedules/schedule.ts'
import { isTerminal } from '../../core/task.ts'
import { type CheckedTask, isWhole } from './history-rules.ts'
import type { Ledger } from './ledger.ts'

export const checkToken = (token: string, holders: readonly string[], ledger: Ledger): void => {
  const [first, ...others] = holders
  for (const other of others) ledger.violate('I3', other, `its lease token ${token} was also given for ${first}`)
}

/** A task that names a key. With `isExact` the key ends at a fixed time, after which another task may have it; null: the key no longer belongs to this task. */
export interface KeyHolder {
  readonly id: string
  readonly isExact: boolean | null
}

export const checkKey = (key: string, holders: readonly KeyHolder[], ledger: Ledger): void => {
  if (holders.length === 0 || holders.some(({ isExact }) => isExact)) return
  ledger.check('I6')
  const [first, ...others] = holders
  for (const { id } of others) ledger.violate('I6', id, `its idempotency key ${key} is also that of ${first!.id}`)
}

/** One task of a schedule, or the key that such a task has left behind. */
export interface FiredSlot {
  readonly incarnation: string
  readonly slot: number
  /** null if only its key is left. */
  readonly task: { readonly id: string; readonly createdAt: number; readonly endedAt: number | null } | null
}

const SLOT_KEY = /^schedule:(.*):([^:]+):(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/s

/** The schedule and the slot that a key of a slot names. */
export const slotOf = (
  key: string,
): (Pick<FiredSlot, 'incarnation' | 'slot'> & { readonly schedule: string }) | null => {
  const [, schedule, incarnation, slot] = SLOT_KEY.exec(key) ?? []
  return slot === undefined ? null : { schedule: schedule!, incarnation: incarnation!, slot: Date.parse(slot) }
}

/** When it first ended; null if it has not ended, undefined if that is no longer known. */
export const firstEndOf = (task: CheckedTask): number | null | undefined => {
  if (!isWhole(task)) return undefined
  return task.history.find(({ to }) => isTerminal(to))?.at ?? null
}

/**
 * Tasks of slots before `keptSince` may have been removed, those of slots after `until` may be missing among the tasks that were read. The time of one
 * process may be ahead of another's by `clockBound`.
 */
export interface SlotsRead {
  readonly keptSince: number
  readonly until: number
  readonly clockBound: number
}

export const checkSchedule = (
  record: ScheduleRecord | null,
  fired: readonly FiredSlot[],
  read: SlotsRead,
  ledger: Ledger,
): void => {
  const tasks = fired.filter(({ task }) => task !== null)
  ledger.check('I9', tasks.length)
  const known = new Map<string, string>()
  for (const { incarnation, slot, task } of tasks) {
    const other = known.get(`${incarnation} ${slot}`)
    if (other !== undefined) ledger.violate('I9', task!.id, `was made for the same slot as ${other}`)
    known.set(`${incarnation} ${slot}`, task!.id)
  }
  if (record === null) return
  const own = fired.filter(({ incarnation }) => incarnation === record.incarnation)
  if (record.overlap === 'skip') checkOverlaps(record, own, read, ledger)
  if (record.catchUp === 'all' && record.mode !== 'fixed-delay') checkSkipped(record, own, read, ledger)
}

const checkOverlaps = (
  { id }: ScheduleRecord,
  fired: readonly FiredSlot[],
  { clockBound }: SlotsRead,
  ledger: Ledger,
): void => {
  const tasks = fired
    .flatMap(({ task, slot }) => (task === null ? [] : [{ ...task, slot }]))
    .sort((a, b) => a.slot - b.slot)
  for (const [i, task] of tasks.entries()) {
    const before = tasks[i - 1]
    if (before === undefined) continue
    const early = before.endedAt === null ? Number.POSITIVE_INFINITY : before.endedAt - task.createdAt
    const howEarly = before.endedAt === null ? '' : `${early} ms `
    if (early > clockBound)
      ledger.violate(
        'I9',
        task.id,
        `was made for schedule ${id} ${howEarly}before its last task ${before.id} had ended`,
      )
  }
}

/** Only the newest thousand slots: after a longer outage no more are caught up. */
const checkSkipped = (
  record: ScheduleRecord,
  fired: readonly FiredSlot[],
  { keptSince, until }: SlotsRead,
  ledger: Ledger,
): void => {
  const slots = new Set(fired.map(({ slot }) => slot))
  const due = dueSlots(recurrenceOf(record, record.cursor), 'all', Math.max(record.updatedAt, keptSince), until).fire
  ledger.check('I9', due.length)
  for (const slot of due)
    if (!slots.has(slot))
      ledger.violate('I9', null, `schedule ${record.id}: no task for the slot ${new Date(slot).toISOString()}`)
}
