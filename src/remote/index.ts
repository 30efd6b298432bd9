/** `holdfast/remote`: a client of the HTTP API that needs `fetch` and nothing else. */
import { RemoteClient } from './client.ts'
import type { RemoteOptions } from './connection.ts'

export { CODES, type Code, HoldfastError, isHoldfastError } from '../core/errors.ts'
export { PermanentError, RescheduleError, type RescheduleOptions, RetryableError } from '../core/failure.ts'
export type { SubmitOptions } from '../core/submission.ts'
export type { TaskStatus } from '../core/task.ts'
export type { Duration } from '../core/values/durations.ts'
export { defineTask, type TaskDefinition } from '../runtime/definition.ts'
export { AbortedError, type AbortReason } from '../runtime/handler.ts'
export type {
  CallOptions,
  RemoteClient,
  RemoteListOptions,
  RemoteSubmitItem,
  RemoteSubmitResult,
  RemoteWaitOptions,
} from './client.ts'
export type { RemoteOptions } from './connection.ts'
export type { RemoteTask } from './task.ts'
export type { RemoteContext, RemoteHandler, RemoteWorker, RemoteWorkerOptions } from './worker.ts'

/** A client of the server at `url`. No request is sent before the first call. */
export const connectRemote = (options: RemoteOptions): RemoteClient => new RemoteClient(options)
