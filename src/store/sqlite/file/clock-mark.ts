/** The latest time that any process used on a file, and the mark that a clock far ahead has left there. */
import type { DatabaseSync } from 'node:sqlite'
import { isCredible } from '../../../core/host/host-clock.ts'
import { readMeta, writeMeta } from '../schema.ts'

export interface ClockMark {
  readonly at: number
  /** host/pid; null if an older release wrote it. */
  readonly by: string | null
}

export const readHighWater = (db: DatabaseSync): ClockMark => ({
  at: Number(readMeta(db, 'high_water') ?? 0),
  by: readMeta(db, 'high_water_by'),
})

/** The mark of a clock that was implausibly far ahead of `now`: the one in the file, or one that was found there before. */
export const readAhead = (db: DatabaseSync, now: number): ClockMark | null => {
  const mark = readHighWater(db)
  if (!isCredible(mark.at, now)) return mark
  const noted = readMeta(db, 'clock_ahead')
  return noted === null ? null : (JSON.parse(noted) as ClockMark)
}

/** Overwrites an implausible mark, and keeps it for `doctor`. */
export const writeHighWater = (db: DatabaseSync, now: number, by: string): void => {
  const mark = readHighWater(db)
  if (!isCredible(mark.at, now)) writeMeta(db, 'clock_ahead', JSON.stringify(mark))
  writeMeta(db, 'high_water', String(now))
  if (mark.by !== by) writeMeta(db, 'high_water_by', by)
}
