/** The messages between a worker and the child that runs an isolated handler. Values are sent as JSON text. */
import type { ShownStep } from '../../../core/steps/journal.ts'
import type { Encoding, TaskRecord } from '../../../core/task.ts'
import type { Output } from '../../../core/values/output.ts'
import type { Payload } from '../../../core/values/payload.ts'
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
  /** The answer to the n-th call of the run. */
  | { readonly kind: 'answer'; readonly run: number; readonly n: number; readonly value: CallResult }
  | { readonly kind: 'refused'; readonly run: number; readonly n: number; readonly error: ErrorText }
  /** Asks the schema of the wait that is the n-th call about the value of a signal. */
  | { readonly kind: 'check'; readonly run: number; readonly n: number; readonly value: Payload | null }

/** A call about durable steps. They are kept by the worker, and their functions run in the child. */
export type StepCall =
  | { readonly call: 'begin'; readonly name: string }
  | { readonly call: 'record'; readonly name: string; readonly value: Payload | null }
  | { readonly call: 'leave' }
  | { readonly call: 'sleep'; readonly name: string; readonly length: number }
  | {
      readonly call: 'wait'
      readonly name: string
      readonly signal: string
      readonly length: number | null
      readonly hasSchema: boolean
    }
  | { readonly call: 'list' }

export type CallResult =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'value'; readonly value: Payload | null }
  | { readonly kind: 'steps'; readonly steps: readonly ShownStep[] }

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
  | { readonly kind: 'call'; readonly run: number; readonly n: number; readonly ask: StepCall }
  /** The answer to a check: why the schema refuses the value; null: it does not. */
  | { readonly kind: 'verdict'; readonly run: number; readonly n: number; readonly why: string | null }
  | { readonly kind: 'returned'; readonly run: number; readonly output: Output }
  | { readonly kind: 'threw'; readonly run: number; readonly error: ErrorText }
  /** The last message: an uncaught error. */
  | { readonly kind: 'crashed'; readonly error: ErrorText }

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** The store's mark is not sent. */
export type CrossingTask = Omit<TaskRecord, 'mark'>

export const crossing = ({ mark: _, ...task }: TaskRecord): CrossingTask => task
