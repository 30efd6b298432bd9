/** What each field of an exported task must be, so that a damaged file is refused before anything is written. */

import { STATUSES, type TaskRecord } from '../task.ts'
import { LONGEST_DURATION } from '../values/durations.ts'
import { isInstant } from '../values/instants.ts'

type Json = Readonly<Record<string, unknown>>

export const ENTRY_INSTANTS = 'at availableAt expiresAt expiredAt'.split(' ')

type Check = (value: unknown) => boolean

export const text: Check = (value) => typeof value === 'string'
const whole: Check = (value) => Number.isSafeInteger(value)
const count: Check = (value) => whole(value) && (value as number) >= 0
const maybe =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
export const record: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
export const duration: Check = (value) => count(value) && (value as number) <= LONGEST_DURATION
const instantsIn = (value: unknown, names: readonly string[]): boolean =>
  record(value) && names.every((name) => isInstant((value as Json)[name]))
const policy: Check = (value) => {
  if (!record(value)) return false
  const { base, max, multiplier, jitter } = value as Json
  return duration(base) && duration(max) && Number.isFinite(multiplier) && (multiplier as number) >= 1 && text(jitter)
}

const isJournalEntry = (entry: Json, i: number): boolean =>
  entry['n'] === i &&
  text(entry['kind']) &&
  text(entry['name']) &&
  text(entry['op']) &&
  isInstant(entry['at']) &&
  (entry['until'] === undefined || maybe(isInstant)(entry['until']))

export const TASK_CHECKS: readonly (readonly [keyof TaskRecord, Check])[] = [
  ['id', text],
  ['queue', text],
  ['type', text],
  ['status', (value) => STATUSES.includes(value as never)],
  ['priority', whole],
  ['group', maybe(text)],
  ['availableAt', isInstant],
  ['expiresAt', maybe(isInstant)],
  ['expiredAt', maybe(isInstant)],
  ['idempotencyKey', maybe(text)],
  ['attempts', count],
  ['retryCount', count],
  ['maxRetries', maybe(count)],
  ['rescheduleCount', count],
  ['maxReschedules', maybe(count)],
  ['replayCount', count],
  ['replayedAs', maybe(text)],
  ['replayOf', maybe(text)],
  ['retryPolicy', maybe(policy)],
  ['timeout', maybe(duration)],
  ['lease', maybe((value) => instantsIn(value, ['claimedAt', 'expiresAt']))],
  ['cancelRequestedAt', maybe(isInstant)],
  ['lastError', maybe((value) => instantsIn(value, ['at']))],
  ['createdAt', isInstant],
  ['updatedAt', isInstant],
  ['startedAt', maybe(isInstant)],
  ['completedAt', maybe(isInstant)],
  ['outputError', maybe(text)],
  ['archivedFrom', maybe((value) => STATUSES.includes(value as never))],
  ['scheduleId', maybe(text)],
  ['tags', maybe((value) => record(value) && Object.values(value as object).every(text))],
  [
    'parked',
    maybe((value) => record(value) && text((value as Json)['step']) && maybe(isInstant)((value as Json)['until'])),
  ],
  ['generation', count],
  ['hasJournal', (value) => typeof value === 'boolean'],
  ['journal', (value) => (value as readonly Json[]).every(isJournalEntry)],
  ['revision', (value) => count(value) && value !== 0],
  [
    'history',
    (value) =>
      (value as readonly Json[]).every(
        (entry) =>
          whole(entry['n']) &&
          text(entry['move']) &&
          text(entry['op']) &&
          isInstant(entry['at']) &&
          ENTRY_INSTANTS.every((name) => entry[name] === undefined || isInstant(entry[name])),
      ),
  ],
]
