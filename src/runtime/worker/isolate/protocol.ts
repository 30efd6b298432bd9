/** The messages between a worker and the child that runs an isolated handler. Values are sent as JSON text. */
import type { Output } from '../../../core/output.ts'
import type { Encoding, TaskRecord } from '../../../core/task.ts'
import type { AbortReason } from '../../handler.ts'
import type { ErrorText } from './errors.ts'

export type ToChild =
  | {
      readonly kind: 'run'
      /** Increases with every run, so that messages of an earlier run can be ignored. */
      readonly run: number
      readonly module: string
      readonly export: string
      readonly task: CrossingTask
      /** The input as parsed by the schema; null: use the task's. */
      readonly input: string | null
      readonly encoding: Encoding
      readonly workerId: string
      readonly maxPayload: number
    }
  | { readonly kind: 'abort'; readonly run: number; readonly reason: AbortReason }

export type FromChild =
  | { readonly kind: 'ready' }
  | { readonly kind: 'progress'; readonly run: number; readonly text: string }
  | {
      readonly kind: 'log'
      readonly run: number
      readonly level: LogLevel
      readonly message: string
      /** JSON text of an object. */
      readonly facts: string
    }
  | { readonly kind: 'returned'; readonly run: number; readonly output: Output }
  | { readonly kind: 'threw'; readonly run: number; readonly error: ErrorText }
  /** The last message: an uncaught error. */
  | { readonly kind: 'crashed'; readonly error: ErrorText }

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** The store's mark is not sent. */
export type CrossingTask = Omit<TaskRecord, 'mark'>

export const crossing = ({ mark: _, ...task }: TaskRecord): CrossingTask => task
