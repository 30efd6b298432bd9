/** The public API of Holdfast: this file is its table of contents. */

export { type ConnectDefaults, type ConnectOptions, connect, DEFAULT_ADDRESS } from './connect.ts'
export type { AmendOptions } from './core/amend.ts'
export type { CoalesceOptions } from './core/coalesce.ts'
export { CODES, type Code, HoldfastError, isHoldfastError } from './core/errors.ts'
export {
  PermanentError,
  RescheduleError,
  type RescheduleOptions,
  RetryableError,
  type RetryableOptions,
} from './core/failure.ts'
export { type LimitOptions, limitsText } from './core/flow/limits.ts'
export type { QueueLimits } from './core/flow/queue-flow.ts'
export { startsPerSecond } from './core/flow/rate.ts'
export { MOVES, type MoveName, RUN_ENDS } from './core/machine.ts'
export { CHART_COUNTS, type ChartCount, type ChartTotals } from './core/observe/chart-slot.ts'
export type { Fact, Finding, Verdict } from './core/observe/diagnosis.ts'
export { type Fingerprint, fingerprintOf } from './core/observe/fingerprint.ts'
export { Task } from './core/observe/task-view.ts'
export { isMove, type StepMoment, type TimelineEntry } from './core/observe/timeline.ts'
export { ANY_TYPE, type Circumstances, type Reason, reasonOf, skippedBecause } from './core/observe/why.ts'
export { DEFAULT_RETRY_POLICY, RETRY_POLICIES, type RetryPolicyName, type RetryPolicyOptions } from './core/retry.ts'
export type { CatchUp } from './core/schedules/recurrence.ts'
export {
  type Overlap,
  type PastSlot,
  Schedule,
  type ScheduledTaskOptions,
  type ScheduleMode,
  type SchedulePolicy,
  type ScheduleTiming,
  type SkippedSlot,
} from './core/schedules/schedule.ts'
export type { ShownSignal, ShownStep } from './core/steps/journal.ts'
export { Parked, SignalInvalid, SignalTimeout } from './core/steps/step-errors.ts'
export { type InstantInput, parseInstant, type SubmitOptions } from './core/submission.ts'
export {
  type ErrorFacts,
  HISTORY_KEPT,
  type HistoryEntry,
  type Holder,
  type Instant,
  type Jitter,
  type Lease,
  type Parked as ParkedState,
  type RetryPolicy,
  type TaskError,
  TaskStatus,
} from './core/task.ts'
export { type Duration, type DurationParts, formatDuration, parseDuration } from './core/values/durations.ts'
export { errorLine } from './core/values/error-line.ts'
export { formatInstant, formatRelative } from './core/values/instants.ts'
export type { JsonValue } from './core/values/payload.ts'
export { COUNTED_VIEWS, type CountedView, parseView, VIEW_ALIASES, VIEWS, type View } from './core/views.ts'
export type { CallOptions } from './runtime/abortable.ts'
export type { PruneOptions, RetentionHandle, RetentionOptions } from './runtime/cleanup/retention.ts'
export { Client } from './runtime/client.ts'
export type { BulkOptions, BulkReport } from './runtime/dead-letters/bulk.ts'
export type {
  DeadGroup,
  DeadGroups,
  DeadLetters,
  PurgeReport,
  ReplayOptions,
  ReplayReport,
} from './runtime/dead-letters/dead-letters.ts'
export type { DeadQuery } from './runtime/dead-letters/selection.ts'
export {
  type DefineOptions,
  defineTask,
  type InputFor,
  type OutputFor,
  type SubmitDefaults,
  type TaskDefinition,
  type Transaction,
} from './runtime/definition.ts'
export {
  AbortedError,
  type AbortReason,
  type BatchContext,
  type BatchHandler,
  type BatchOptions,
  type Handler,
  type InTransaction,
  type StepContext,
  type TaskContext,
  type WaitForOptions,
} from './runtime/handler.ts'
export type { Monitor } from './runtime/monitor.ts'
export type { FollowOptions, TaskChange } from './runtime/observe/changes.ts'
export {
  CHART_RANGES,
  type ChartPoint,
  type ChartQuery,
  type ChartRange,
  type ChartReading,
  type Charts,
} from './runtime/observe/charts.ts'
export type { Explanation } from './runtime/observe/why.ts'
export type { WorkerReading, WorkerTotals } from './runtime/observe/worker-counts.ts'
export type { QueueHandle } from './runtime/queues/queue-handle.ts'
export type { PauseOptions, ResumeOptions } from './runtime/queues/queues.ts'
export type { ScheduleChanges, ScheduleOptions, Schedules } from './runtime/schedules/schedules.ts'
export type { SubmitManyItem } from './runtime/submit/many.ts'
export type { SubmitResult } from './runtime/submit/submitter.ts'
export type { CancelManyOptions } from './runtime/tasks/cancel-many.ts'
export type { Count, CountOptions, ListOptions, QueueStats, TaskPage, TaskQuery } from './runtime/tasks/inspect.ts'
export type { TaskLease } from './runtime/tasks/lease.ts'
export type { LeaseSteps, SignalOutcome, StepBegun, WaitOutcome } from './runtime/tasks/lease-steps.ts'
export type { EachResult } from './runtime/tasks/move-each.ts'
export type { ClaimNextOptions, ClaimOptions } from './runtime/tasks/operations.ts'
export type { WaitOptions } from './runtime/tasks/waiting.ts'
export type { MoveEvent } from './runtime/telemetry/events.ts'
export { type Logger, silentLogger, stderrLogger } from './runtime/telemetry/logger.ts'
export type { ImportOptions, ImportReport, OpenLines } from './runtime/transfer/import.ts'
export type { MoveOptions, MoveProgress, MoveReport } from './runtime/transfer/transfer.ts'
export type { Drained, DrainOptions } from './runtime/worker/draining.ts'
export type { IsolatedHandler } from './runtime/worker/isolate/options.ts'
export type { Middleware } from './runtime/worker/middleware.ts'
export type { WorkerHooks, WorkerOptions } from './runtime/worker/options.ts'
export type { RemoteWorker, WorkerInfo } from './runtime/worker/registration.ts'
export type { StuckTask } from './runtime/worker/stuck.ts'
export { Worker } from './runtime/worker/worker.ts'
export { version } from './version.ts'
