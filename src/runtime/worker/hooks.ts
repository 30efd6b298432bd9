/** Calls the hooks of a worker, and warns about outputs that JSON changed. An error thrown by a hook is logged and changes nothing. */
import { HoldfastError } from '../../core/errors.ts'
import { Task } from '../../core/observe/task-view.ts'
import { applyChange, type Change, type TaskRecord } from '../../core/task.ts'
import type { Output } from '../../core/values/output.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Attempt } from './attempt.ts'
import type { WorkerSettings } from './options.ts'

export class Hooks {
  readonly #settings: Pick<WorkerSettings, 'hooks' | 'onError'>
  readonly #logger: Logger
  /** Types whose output JSON changed: each is warned about once. */
  readonly #warned = new Set<string>()

  constructor(settings: Pick<WorkerSettings, 'hooks' | 'onError'>, logger: Logger) {
    this.#settings = settings
    this.#logger = logger
  }

  started(): void {
    this.#call(() => this.#settings.hooks.onStart?.())
  }

  stopped(): void {
    this.#call(() => this.#settings.hooks.onStop?.())
  }

  taskStarts(attempt: Attempt): void {
    const { onTaskStart } = this.#settings.hooks
    if (onTaskStart) this.#call(() => onTaskStart(attempt.task))
  }

  /** `result` is the task, to which `change` is not applied yet, or the reason why the end could not be written. */
  taskEnded(attempt: Attempt, result: TaskRecord | HoldfastError, change: Change | null = null): void {
    const {
      onError,
      hooks: { onTaskEnd },
    } = this.#settings
    if (onError === undefined && onTaskEnd === undefined) return
    const task =
      result instanceof HoldfastError ? attempt.task : new Task(change === null ? result : applyChange(result, change))
    const thrown = attempt.failure === null ? null : asError(attempt.failure.error)
    if (thrown !== null && onError !== undefined) this.#call(() => onError(thrown, task, attempt))
    if (onTaskEnd !== undefined) this.#call(() => onTaskEnd(task, result instanceof HoldfastError ? result : thrown))
  }

  stuck(attempt: Attempt): void {
    this.#call(() => this.#settings.hooks.onStuck?.(attempt.task))
  }

  outputChanged({ record: { id, type, attempts } }: Attempt, { error, changed = '' }: Output): void {
    if (error !== undefined) {
      this.#logger.warn(`task ${id} (${type}) completed; about its output: ${error}`, {
        task: id,
        type,
        attempt: attempts,
      })
    } else if (!this.#warned.has(type)) {
      this.#warned.add(type)
      this.#logger.warn(
        `the output of ${type} is kept as JSON.stringify writes it: ${changed}. This is said once for each type.`,
        { task: id, type },
      )
    }
  }

  #call(hook: () => void): void {
    try {
      hook()
    } catch (error) {
      this.#logger.error(`a worker hook threw: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}

const asError = (thrown: unknown): Error => {
  try {
    return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown })
  } catch {
    return new Error('an error that cannot be printed', { cause: thrown })
  }
}
