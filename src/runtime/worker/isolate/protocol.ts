/** What a worker and the child that runs an isolated handler say to each other. Values cross as JSON text. */
import type { Output } from '../../../core/output.ts'
import type { Encoding, TaskRecord } from '../../../core/task.ts'
import type { AbortReason } from '../../handler.ts'
import type { ErrorText } from './errors.ts'

export type ToChild =
  | {
      readonly kind: 'run'
      /** Grows: what a run says after its end is ignored. */
      readonly run: number
      readonly module: string
      readonly export: string
      readonly task: CrossingTask
      /** As its schema has parsed it; null: as it is in the task. */
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
  /** Nothing more comes: an error that no handler caught. */
  | { readonly kind: 'crashed'; readonly error: ErrorText }

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** A store's own mark stays where it is. */
export type CrossingTask = Omit<TaskRecord, 'mark'>

export const crossing = ({ mark: _, ...task }: TaskRecord): CrossingTask => task
