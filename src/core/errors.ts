/** The one error class of Holdfast and its closed set of codes. docs/errors.md is printed from this table. */

export const CODES = {
  INVALID_TASK: {
    text: 'The task is not valid.',
    fix: 'Correct the field that the message names; nothing was written.',
  },
  INVALID_OPTION: {
    text: 'An option has an invalid value.',
    fix: 'Correct the option that the message names; nothing was written.',
  },
  INVALID_DURATION: {
    text: 'A duration cannot be parsed.',
    fix: "Write '500ms', '30s', '5m', '1h30m', '7d', or { minutes: 5 }.",
  },
  INVALID_WORKER_ID: { text: 'The worker id is empty or invalid.', fix: 'Give each worker a unique, non-empty id.' },
  PAYLOAD_TOO_LARGE: {
    text: 'Input or output is over the limit.',
    fix: 'Store the large value elsewhere and submit a reference, or raise `maxPayload` on connect.',
  },
  OUTPUT_INVALID: {
    text: 'The task completed, but its output could not be stored.',
    fix: 'Return JSON values within `maxPayload`. Do not run the task again for this: its effect has already happened.',
  },
  ALREADY_EXISTS: {
    text: 'A task or schedule with this id already exists.',
    fix: 'Omit `id`, or use an idempotency key if you mean to repeat a submit; for a schedule, update the existing one.',
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
    fix: 'Check the id, or create the schedule.',
  },
  GROUP_NOT_FOUND: {
    text: 'No dead letter belongs to this group.',
    fix: 'List the groups with `deadLetters.groups()` (`holdfast dead --groups`); its tasks may already have been replayed or purged.',
  },
  TASK_NOT_CLAIMED: { text: 'The task is pending; no worker holds it.', fix: 'Claim it first.' },
  TASK_ALREADY_CLAIMED: { text: 'Another worker holds the task.', fix: 'Skip it, or wait until its lease ends.' },
  TASK_NOT_AVAILABLE: { text: 'The task is not due yet.', fix: 'Wait until availableAt.' },
  TASK_EXPIRED: {
    text: 'The task expired before it ran.',
    fix: 'Submit it again if it is still needed.',
  },
  TASK_COMPLETED: { text: 'The task is completed.', fix: 'Nothing to do: its output is stored with it.' },
  TASK_FAILED: { text: 'The task has failed.', fix: 'Read its lastError; replay it when the cause is fixed.' },
  TASK_CANCELLED: { text: 'The task is cancelled.', fix: 'Retry it if it should run.' },
  TASK_ARCHIVED: { text: 'The task is archived.', fix: 'Unarchive it first.' },
  TASK_NOT_TERMINAL: {
    text: 'The task has not ended, so it cannot be removed or archived.',
    fix: 'Cancel it or wait until it ends.',
  },
  WRONG_WORKER: {
    text: 'Another worker holds the task.',
    fix: 'Only the worker that claimed a task can move it.',
  },
  STALE_LEASE: {
    text: 'This lease is not the current one.',
    fix: 'Stop: another worker may own the task now. Nothing was written.',
  },
  CANNOT_AMEND: {
    text: 'Only a waiting task can be changed; if it has steps, only its priority, group and tags.',
    fix: 'Send the signal that it waits for, or cancel it and submit a new one.',
  },
  TASK_MOVED: { text: 'The task was moved to another store.', fix: 'Handle it there.' },
  TASK_ENDED: {
    text: 'The task has ended and takes no signals.',
    fix: 'Nothing was kept. Signal a task that is pending or running.',
  },
  TOO_MANY_SIGNALS: {
    text: 'The task has too many signals that no step has taken.',
    fix: 'The signal was not kept. Let the handler take them with `ctx.waitFor`, or send fewer.',
  },
  STEP_REPEATED: {
    text: 'A handler used the name of a step twice in one run.',
    fix: 'Give each step of a run its own name, for example with the index of the item in it.',
  },
  STEP_INVALID: {
    text: 'A step cannot be recorded: its result is not JSON, its name is recorded for a step of another kind, or it sleeps inside another step.',
    fix: 'Correct the handler as the message says, then replay the task: it is dead, because a repeat would fail alike.',
  },
  STEPS_TOO_LARGE: {
    text: 'The task has too many steps, or their results are too large together.',
    fix: 'Store large results elsewhere and return a reference, or split the task into several.',
  },
  SIGNAL_INVALID: {
    text: 'The schema of a wait refused the value of its signal.',
    fix: 'The signal is taken. Catch `SignalInvalid`, or send a valid signal for another step.',
  },
  TX_NOT_COMMITTED: {
    text: 'A transaction that the run joined was not committed.',
    fix: 'End the transaction that `ctx.complete(output, { tx })` or `ctx.step(name, fn, { tx })` joined before the next step, and before the handler returns.',
  },
  CANNOT_CANCEL: { text: 'The task has ended and cannot be cancelled.', fix: 'Nothing to cancel.' },
  CANNOT_EXPIRE: { text: 'Only a pending task can expire.', fix: 'Cancel it instead if it is running.' },
  CANNOT_RETRY: { text: 'A task with this status cannot be retried.', fix: 'Submit a new task.' },
  CANNOT_REPLAY: { text: 'Only a failed task can be replayed.', fix: 'Use retry for cancelled tasks.' },
  CANNOT_UNARCHIVE: { text: 'The task is not archived.', fix: 'Nothing to do.' },
  MAX_ATTEMPTS_REACHED: { text: 'The task has no retries left.', fix: 'Replay it: this gives it a new retry budget.' },
  SCHEDULE_MOVED: { text: 'The schedule was moved to another store.', fix: 'Manage it there.' },
  WORKERS_LIVE: {
    text: 'Live workers are registered on the store that you want to move.',
    fix: 'Stop them (a killed worker stays registered for 30 s), or move with `live: true` (`--live`) while they run.',
  },
  MOVE_UNDER_WAY: {
    text: 'A move between stores is not finished.',
    fix: 'Run the same move again: it continues where it stopped, and resumes the queues that it paused.',
  },
  INVALID_EXPORT: {
    text: 'This is not a complete Holdfast export.',
    fix: 'Export again, or correct the line that the message names; nothing was written.',
  },
  LIMIT_REACHED: {
    text: 'A limit of the queue leaves no room for this task now.',
    fix: 'Wait until a task of the queue or group has ended, or raise the limit with `queue(name).limit()` (`holdfast limit`).',
  },
  QUEUE_PAUSED: { text: 'The queue is paused.', fix: 'Resume it, or wait.' },
  NO_HANDLER: { text: 'No handler is registered for this type.', fix: 'Call worker.handle(type, handler) before run.' },
  HANDLER_STUCK: {
    text: 'The handler did not stop when its signal aborted.',
    fix: 'Pass `ctx.signal` on, set timeouts on everything it awaits, or run it with `isolate`: docs/isolation.md.',
  },
  HANDLER_CRASHED: {
    text: 'The thread or process of an isolated handler died, or was killed.',
    fix: 'Read the message: an exit, an abort, more memory than `heap`, or an uncaught error.',
  },
  NOT_IN_ISOLATION: {
    text: 'This part of the context is not available in an isolated handler.',
    fix: 'Connect to the store in the module of the handler, or run the handler without `isolate`.',
  },
  WORKER_STUCK: {
    text: 'As many handlers are stuck as the worker has slots.',
    fix: 'Let a supervisor restart the process; run the handler with `isolate`: docs/isolation.md.',
  },
  WAIT_TIMEOUT: {
    text: 'The task did not end within the timeout of the wait.',
    fix: 'Wait longer; the task itself continues.',
  },
  ABORTED: {
    text: "The caller's signal aborted the call.",
    fix: 'Nothing to do: the call was stopped as requested. `details.sent` says whether a write was under way.',
  },
  STORE_CLOSED: { text: 'The client is closed.', fix: 'Connect again.' },
  STORE_UNAVAILABLE: {
    text: 'The store cannot be reached.',
    fix: 'Check that it runs and that the address is correct. A submit is safe to repeat with the same id or idempotency key.',
  },
  STORE_BUSY: {
    text: 'Another process has locked the store for too long.',
    fix: 'Look for a long transaction on the file, then repeat the call.',
  },
  STORE_CONFLICT: { text: 'The task changed between read and write too many times.', fix: 'Repeat the call.' },
  STORE_FULL: { text: 'The disk or the quota is full.', fix: 'Free some space; nothing was partially written.' },
  STORE_READ_ONLY: {
    text: 'This process does not have the right to do that on the store.',
    fix: 'Grant the right that the message names, or use a role, user or file that has it. `holdfast doctor` lists the missing rights.',
  },
  STORE_REFUSED: {
    text: 'The server of the store refused a request for its own reason.',
    fix: 'The message quotes the server: correct what it names, such as an encryption key or a setting of the bucket. Nothing was written.',
  },
  STORE_UNSAFE: {
    text: 'The store no longer gives a guarantee that Holdfast relies on.',
    fix: 'Undo the change on the server, or move to a server that gives the guarantee; then check with `holdfast doctor`.',
  },
  STORE_CORRUPT: {
    text: 'The store is damaged or not a Holdfast store.',
    fix: 'Do not delete it: restore a backup to another place. `holdfast doctor` says what is damaged and what else can be done.',
  },
  STORE_NOT_FOUND: {
    text: 'There is no store at this address.',
    fix: 'Check the address, or create the store with create: true.',
  },
  STORE_IDENTITY_CHANGED: {
    text: 'The store vanished, was replaced, or went back to an older state while in use.',
    fix: 'Restore the old store. To continue with a restored one, stop all processes, run `holdfast init --accept-restore` and start them again.',
  },
  SCHEMA_NEWER: { text: 'The store was written by a newer release.', fix: 'Upgrade Holdfast in this process.' },
  SCHEMA_OLDER: {
    text: 'The store has an older schema than this release needs.',
    fix: 'Run `holdfast migrate URL` as a role with the right to change the schema.',
  },
  DRIVER_MISSING: {
    text: 'The driver for this store is not installed.',
    fix: 'Install the package that the message names.',
  },
  INTERNAL: { text: 'A bug in Holdfast.', fix: 'Please report it with the message and stack.' },
} as const satisfies Record<string, { text: string; fix: string }>

/** The code of an error of Holdfast. The list is closed. */
export type Code = keyof typeof CODES

export type ErrorDetails = Readonly<Record<string, unknown>>

/** The only error class that Holdfast throws. Branch on `code`, never on `message`. */
export class HoldfastError extends Error {
  override readonly name = 'HoldfastError'
  /** What to branch on: docs/errors.md lists all. */
  readonly code: Code
  /** Facts about this case: the field, the task, the limit. */
  readonly details: ErrorDetails

  constructor(code: Code, message: string = CODES[code].text, details: ErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.details = details
  }

  /** What to do about it: advice for this case if there is any, otherwise for its code. */
  get fix(): string {
    const { advice } = this.details
    return typeof advice === 'string' ? advice : CODES[this.code].fix
  }

  /** For logs and answers; without the stack. */
  toJSON(): { name: string; code: Code; message: string; fix: string; details: ErrorDetails } {
    return { name: this.name, code: this.code, message: this.message, fix: this.fix, details: this.details }
  }
}

/** Whether a value is an error of Holdfast, and of this code if one is given. It also knows errors of another copy of the package. */
export const isHoldfastError = (error: unknown, code?: Code): error is HoldfastError =>
  (error instanceof HoldfastError || isOfAnotherCopy(error)) && (code === undefined || error.code === code)

/** By what they look like: each copy has classes of its own, and a test runner may give each file its own `Error`. */
const isOfAnotherCopy = (error: unknown): error is HoldfastError => {
  if (typeof error !== 'object' || error === null || !('stack' in error)) return false
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown }
  return name === 'HoldfastError' && typeof code === 'string' && Object.hasOwn(CODES, code)
}

/** Any thrown value as a HoldfastError. Anything that is not one is a bug in Holdfast. */
export const asHoldfastError = (thrown: unknown): HoldfastError =>
  isHoldfastError(thrown)
    ? thrown
    : new HoldfastError('INTERNAL', thrown instanceof Error ? thrown.message : String(thrown), {}, thrown)

/** Whether it is unclear if the call took effect: the caller must read the record before it decides. */
export const isContactLost = (error: unknown): boolean => isHoldfastError(error, 'STORE_UNAVAILABLE')

/** Whether the server answered that others write the same record at this moment. The caller may try again, and contact is not lost. */
export const isConflict = (error: unknown): boolean =>
  isContactLost(error) && (error as HoldfastError).details['isConflict'] === true

/** Whether no connection was made: then the call certainly had no effect. */
export const isUnconnected = (error: unknown): boolean =>
  isContactLost(error) && typeof (error as HoldfastError).details['reason'] === 'string'

/** Refusals after which nothing was written, and that may end by themselves. */
const PASSING: ReadonlySet<Code> = new Set<Code>(['STORE_BUSY', 'STORE_FULL', 'STORE_READ_ONLY'])

/** Whether the same call may succeed later: the connection may return, a lock may be released, a disk may be freed, a standby may be promoted. */
export const mayPass = (error: unknown): boolean =>
  isContactLost(error) || (isHoldfastError(error) && PASSING.has(error.code))

/**
 * Whether the store as a whole refuses every call: then it is pointless to try the parts of a batch one by one. A full store is
 * an exception: smaller values may still fit.
 */
export const isOfTheStore = (error: unknown): boolean =>
  isHoldfastError(error) && error.code.startsWith('STORE_') && error.code !== 'STORE_FULL'
