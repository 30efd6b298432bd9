/** The one error class of Holdfast and its closed set of codes. docs/errors.md is printed from this table. */

export const CODES = {
  INVALID_TASK: {
    text: 'The task cannot be accepted as it is.',
    fix: 'Correct the field that the message names; nothing was written.',
  },
  INVALID_OPTION: {
    text: 'An option has a value that cannot be used.',
    fix: 'Correct the option that the message names; nothing was written.',
  },
  INVALID_DURATION: {
    text: 'A duration cannot be read.',
    fix: "Write '500ms', '30s', '5m', '1h30m', '7d', or { minutes: 5 }.",
  },
  INVALID_WORKER_ID: { text: 'The worker id is empty or not usable.', fix: 'Give each worker a unique, non-empty id.' },
  PAYLOAD_TOO_LARGE: {
    text: 'Input or output is over the limit.',
    fix: 'Store the large value elsewhere and submit a reference, or raise `maxPayload` on connect.',
  },
  OUTPUT_INVALID: {
    text: 'The handler returned something that cannot be stored as JSON.',
    fix: 'Return JSON values only. The task fails without retry.',
  },
  ALREADY_EXISTS: {
    text: 'A task or schedule with this id exists already.',
    fix: 'Leave `id` out, or use an idempotency key if a repeat is meant; update the schedule that is there.',
  },
  IDEMPOTENCY_CONFLICT: {
    text: 'The idempotency key was used before with another type or input.',
    fix: "Use a key that names this work, or pass onMismatch: 'existing'.",
  },
  TASK_NOT_FOUND: {
    text: 'No task has this id.',
    fix: 'Check the id; the task may have been removed by delete, prune or retention.',
  },
  SCHEDULE_NOT_FOUND: {
    text: 'No schedule has this id.',
    fix: 'Check the id, or create it.',
  },
  TASK_NOT_CLAIMED: { text: 'The task is pending; nobody holds it.', fix: 'Claim it first.' },
  TASK_ALREADY_CLAIMED: { text: 'Another worker holds the task.', fix: 'Skip it, or wait until its lease ends.' },
  TASK_NOT_AVAILABLE: { text: 'The task is not due yet.', fix: 'Wait until availableAt.' },
  TASK_EXPIRED: {
    text: 'The task passed its expiry before it was run.',
    fix: 'Submit it again if it is still wanted.',
  },
  TASK_COMPLETED: { text: 'The task is completed.', fix: 'Nothing: its output is stored with it.' },
  TASK_FAILED: { text: 'The task has failed.', fix: 'Read its lastError; replay it when the cause is mended.' },
  TASK_CANCELLED: { text: 'The task is cancelled.', fix: 'Retry it if it should run after all.' },
  TASK_ARCHIVED: { text: 'The task is archived.', fix: 'Unarchive it first.' },
  TASK_NOT_TERMINAL: {
    text: 'The task has not ended, so it cannot be removed or archived.',
    fix: 'Cancel it or wait until it ends.',
  },
  WRONG_WORKER: {
    text: 'The task is held by another worker.',
    fix: 'Only the worker that claimed a task can move it.',
  },
  STALE_LEASE: {
    text: 'This lease is not the current one.',
    fix: 'Stop: somebody else owns the task now. Nothing was written.',
  },
  CANNOT_CANCEL: { text: 'The task has ended and cannot be cancelled.', fix: 'Nothing to cancel.' },
  CANNOT_EXPIRE: { text: 'Only a pending task can expire.', fix: 'Cancel it instead if it is running.' },
  CANNOT_RETRY: { text: 'A task with this status cannot be retried.', fix: 'Submit a new task.' },
  CANNOT_REPLAY: { text: 'Only a failed task can be replayed.', fix: 'Use retry for cancelled tasks.' },
  CANNOT_UNARCHIVE: { text: 'The task is not archived.', fix: 'Nothing to do.' },
  MAX_ATTEMPTS_REACHED: { text: 'The task has no retries left.', fix: 'Replay it: that gives it a new budget.' },
  SCHEDULE_MOVED: { text: 'The schedule was moved to another store.', fix: 'Handle it there.' },
  WORKERS_LIVE: {
    text: 'Workers are live on the store whose tasks are to be moved.',
    fix: 'Stop them (a killed one counts for 30 s), or move with `live: true` (`--live`) while they work.',
  },
  MOVE_UNDER_WAY: {
    text: 'A move between stores has begun and is not finished.',
    fix: 'Run the same move again: it goes on where it ended, and resumes what it paused.',
  },
  INVALID_EXPORT: {
    text: 'This is not a whole export of Holdfast.',
    fix: 'Export again, or mend the line that the message names; nothing was written.',
  },
  QUEUE_PAUSED: { text: 'The queue is paused.', fix: 'Resume it, or wait.' },
  NO_HANDLER: { text: 'No handler is registered for this type.', fix: 'Call worker.handle(type, handler) before run.' },
  WAIT_TIMEOUT: {
    text: 'The task did not end within the time given to wait.',
    fix: 'Wait longer; the task itself goes on.',
  },
  ABORTED: { text: "The caller's signal aborted the call.", fix: 'Nothing: the call was stopped as asked.' },
  STORE_CLOSED: { text: 'The client is closed.', fix: 'Connect again.' },
  STORE_UNAVAILABLE: {
    text: 'The store cannot be reached.',
    fix: 'Repeat the call with the same id or idempotency key: a repeat is recognised.',
  },
  STORE_BUSY: {
    text: 'The store is locked by another process for too long.',
    fix: 'Look for a long transaction on the file; repeat the call.',
  },
  STORE_CONFLICT: { text: 'The task changed between read and write, too many times.', fix: 'Repeat the call.' },
  STORE_FULL: { text: 'The disk or the quota is full.', fix: 'Free some space; nothing was half written.' },
  STORE_READ_ONLY: {
    text: 'The store cannot be written.',
    fix: 'Check owner and permissions of the file and its folder.',
  },
  STORE_CORRUPT: {
    text: 'The store is damaged or not a Holdfast store.',
    fix: 'Do not delete it: restore a backup beside it, or recover with `sqlite3 FILE .recover`.',
  },
  STORE_NOT_FOUND: {
    text: 'There is no store at this address.',
    fix: 'Check the address, or create it with create: true.',
  },
  STORE_IDENTITY_CHANGED: {
    text: 'The store vanished or was replaced while in use.',
    fix: 'Bring the old one back, or restart to accept the new one.',
  },
  SCHEMA_NEWER: { text: 'The store was written by a newer release.', fix: 'Upgrade Holdfast in this process.' },
  SCHEMA_OLDER: {
    text: 'The store has an older schema than this release needs.',
    fix: 'Run `holdfast migrate URL` with a role that may change the schema.',
  },
  DRIVER_MISSING: {
    text: 'The driver for this store is not installed.',
    fix: 'Install the package that the message names.',
  },
  INTERNAL: { text: 'A fault in Holdfast itself.', fix: 'Please report it with the message and stack.' },
} as const satisfies Record<string, { text: string; fix: string }>

export type Code = keyof typeof CODES

export type ErrorDetails = Readonly<Record<string, unknown>>

/** The only error class that Holdfast throws. Branch on `code`, never on `message`. */
export class HoldfastError extends Error {
  override readonly name = 'HoldfastError'
  readonly code: Code
  readonly details: ErrorDetails

  constructor(code: Code, message: string = CODES[code].text, details: ErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.details = details
  }

  toJSON(): { name: string; code: Code; message: string; fix: string; details: ErrorDetails } {
    return { name: this.name, code: this.code, message: this.message, fix: CODES[this.code].fix, details: this.details }
  }
}

export const isHoldfastError = (error: unknown, code?: Code): error is HoldfastError =>
  error instanceof HoldfastError && (code === undefined || error.code === code)

/** Anything that was thrown, as ours: what is not is a fault of Holdfast's own. */
export const asHoldfastError = (thrown: unknown): HoldfastError =>
  isHoldfastError(thrown)
    ? thrown
    : new HoldfastError('INTERNAL', thrown instanceof Error ? thrown.message : String(thrown), {}, thrown)

/** Whether it is unclear if the call took effect: the caller must read before it decides anything. */
export const isContactLost = (error: unknown): boolean => isHoldfastError(error, 'STORE_UNAVAILABLE')

/** Whether the same call may succeed later: contact may come back, a lock be let go, a disk be freed. */
export const mayPass = (error: unknown): boolean =>
  isContactLost(error) || isHoldfastError(error, 'STORE_BUSY') || isHoldfastError(error, 'STORE_FULL')

/**
 * Whether the store as a whole said no, whatever it was asked: trying the parts of a batch one by one is pointless. Not so
 * when it is full: that one value may be the one that does not fit.
 */
export const isOfTheStore = (error: unknown): boolean =>
  isHoldfastError(error) && error.code.startsWith('STORE_') && error.code !== 'STORE_FULL'
