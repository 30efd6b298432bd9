/** The public API of Holdfast: this file is its table of contents. */
export { type ConnectOptions, connect, DEFAULT_ADDRESS } from './connect.ts'
export type { Fact, Finding, Verdict } from './core/diagnosis.ts'
export { type Duration, type DurationParts, formatDuration, parseDuration } from './core/durations.ts'
export { CODES, type Code, HoldfastError, isHoldfastError } from './core/errors.ts'
export { PermanentError, RescheduleError, type RescheduleOptions, RetryableError } from './core/failure.ts'
export { type Fingerprint, fingerprintOf } from './core/fingerprint.ts'
export { formatInstant, formatRelative } from './core/instants.ts'
export { MOVES, type MoveName } from './core/machine.ts'
export type { JsonValue } from './core/payload.ts'
export type { CatchUp } from './core/recurrence.ts'
export { DEFAULT_RETRY_POLICY, type RetryPolicyOptions } from './core/retry.ts'
export {
  type Overlap,
  Schedule,
  type ScheduledTaskOptions,
  type ScheduleMode,
  type SchedulePolicy,
  type ScheduleTiming,
  type SkippedSlot,
} from './core/schedule.ts'
export { Task } from './core/snapshot.ts'
export { type InstantInput, parseInstant, type SubmitOptions } from './core/submission.ts'
export {
  type HistoryEntry,
  type Holder,
  type Instant,
  type Jitter,
  type Lease,
  type RetryPolicy,
  type TaskError,
  TaskStatus,
} from './core/task.ts'
export { COUNTED_VIEWS, type CountedView, parseView, VIEW_ALIASES, VIEWS, type View } from './core/views.ts'
export { type Circumstances, type Reason, reasonOf, skippedBecause } from './core/why.ts'
export { AbortedError, type AbortReason, type Handler, type TaskContext } from './runtime/attempt.ts'
export type { BulkOptions, BulkReport } from './runtime/bulk.ts'
export {
  type ClaimNextOptions,
  type ClaimOptions,
  Client,
  type SubmitManyItem,
} from './runtime/client.ts'
export type {
  DeadGroup,
  DeadGroups,
  DeadLetters,
  PurgeReport,
  ReplayOptions,
  ReplayReport,
} from './runtime/dead-letters.ts'
export type { DeadQuery } from './runtime/dead-selection.ts'
export { type DefineOptions, defineTask, type SubmitDefaults, type TaskDefinition } from './runtime/definition.ts'
export type { MoveEvent } from './runtime/events.ts'
export type { Explanation } from './runtime/explain.ts'
export type { FollowOptions, TaskChange } from './runtime/following.ts'
export type { ImportOptions, ImportReport, OpenLines } from './runtime/importing.ts'
export type { Count, CountOptions, ListOptions, QueueStats, TaskPage, TaskQuery } from './runtime/inspect.ts'
export type { TaskLease } from './runtime/lease.ts'
export { type Logger, silentLogger, stderrLogger } from './runtime/logger.ts'
export type { CancelManyOptions } from './runtime/many.ts'
export type { EachResult } from './runtime/move-each.ts'
export type { MoveOptions, MoveProgress, MoveReport } from './runtime/moving.ts'
export type { WorkerInfo } from './runtime/registry.ts'
export type { PruneOptions, RetentionOptions } from './runtime/retention.ts'
export type { ScheduleChanges, ScheduleOptions, Schedules } from './runtime/schedules.ts'
export type { SubmitResult } from './runtime/submit.ts'
export type { WaitOptions } from './runtime/waiting.ts'
export { Worker } from './runtime/worker.ts'
export type { WorkerHooks, WorkerOptions } from './runtime/worker-options.ts'
