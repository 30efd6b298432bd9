/** One entry of a task's history as one line: `Version 3: pending (rescheduled, available_at: +60s, count: 1)`. */
import type { HistoryEntry } from '../../index.ts'
import { delay, instant, printable } from './render.ts'

/** What happened, from the entry alone; the facts follow it. */
const HAPPENED: Readonly<Record<string, (entry: HistoryEntry) => string | null>> = {
  submit: () => 'created',
  claim: ({ by }) => `claimed by ${by}`,
  complete: ({ by }) => `by ${by}`,
  fail: (entry) => stopped(entry) ?? (entry.to === 'failed' ? `by ${entry.by}` : 'failed'),
  'lose-lease': (entry) => stopped(entry) ?? `lease expired, found by ${entry.by}`,
  'time-out': (entry) => stopped(entry) ?? entry.error ?? 'timed out',
  reschedule: (entry) => stopped(entry) ?? (entry.to === 'failed' ? null : 'rescheduled'),
  park: (entry) => stopped(entry) ?? parked(entry),
  release: (entry) => stopped(entry) ?? `released by ${entry.by}`,
  expire: () => null,
  amend: ({ by, changed = [] }) => `${changed.join(', ')} changed by ${by}`,
  cancel: ({ by }) => `cancelled by ${by}`,
  'request-cancel': ({ by }) => `cancel requested by ${by}`,
  retry: (entry) => `retried by ${entry.by}${entry.to === 'failed' ? ', no retries left' : ''}`,
  replay: ({ by }) => `replayed by ${by}`,
  archive: ({ by }) => `archived by ${by}`,
  unarchive: ({ by }) => `unarchived by ${by}`,
  depart: ({ by, reason = 'moved to another store' }) => `${reason} by ${by}`,
  arrive: ({ by, reason = 'moved from another store' }) => `${reason} by ${by}`,
}

const parked = ({ step, availableAt }: HistoryEntry): string =>
  `parked in step ${step}${availableAt === undefined ? '' : ` until ${instant(availableAt)}`}`

/** A run that ended after a cancel request. */
const stopped = ({ to }: HistoryEntry): string | null => (to === 'cancelled' ? 'stopped as requested' : null)

const COUNTERS: Readonly<Record<string, string>> = { reschedule: 'count', replay: 'replay_count' }
/** Moves whose description is the reason. */
const IS_REASON: ReadonlySet<string> = new Set(['depart', 'arrive'])
/** Moves whose description already contains the error. */
const TELLS_ERROR: ReadonlySet<string> = new Set(['lose-lease', 'time-out', 'retry'])

/** What follows `Version N: status`, without the brackets. */
export const happened = (entry: HistoryEntry): string => {
  const { move, by, at, availableAt, expiresAt, expiredAt, count, error, reason } = entry
  const text = Object.hasOwn(HAPPENED, move) ? HAPPENED[move]!(entry) : `${move} by ${by}`
  const facts = [
    text,
    // An immediate move is the normal case: only a delay is printed.
    availableAt === undefined || move === 'park' || (availableAt <= at && move !== 'reschedule')
      ? null
      : `available_at: ${delay(entry.delay ?? availableAt - at)}`,
    count === undefined ? null : `${COUNTERS[move] ?? 'retry_count'}: ${count}`,
    expiresAt === undefined ? null : `expires_at: ${instant(expiresAt)}`,
    expiredAt === undefined ? null : `expired_at: ${instant(expiredAt)}`,
    error === undefined || TELLS_ERROR.has(move) ? null : `error: ${error}`,
    reason === undefined || IS_REASON.has(move) ? null : `reason: ${reason}`,
  ]
  return printable(facts.filter((fact) => fact !== null).join(', '))
}

export const historyLine = (entry: HistoryEntry): string => `Version ${entry.n}: ${entry.to} (${happened(entry)})`
