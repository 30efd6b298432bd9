/** Logs one line for each failed run and one for each task that is dead after it. Never logs the payload. */

import type { Change, ErrorFacts, TaskRecord } from '../../core/task.ts'
import { formatDuration } from '../../core/values/durations.ts'
import { errorLine } from '../../core/values/error-line.ts'
import type { Logger } from './logger.ts'

const FAILED: ReadonlySet<string> = new Set(['fail', 'time-out', 'lose-lease', 'reschedule'])

export class RunLog {
  readonly #logger: Logger
  #hasSaidWhere = false

  constructor(logger: Logger) {
    this.#logger = logger
  }

  moved(task: TaskRecord, { set, entry }: Change): void {
    const { lastError, status } = set
    if (!lastError || !FAILED.has(entry.move)) return
    const { cause, errors, ...error } = lastError
    const facts = {
      type: task.type,
      queue: task.queue,
      attempt: task.attempts,
      error: errorLine(error),
      ...(cause === undefined ? null : { cause: errorLine(cause) }),
      ...(errors === undefined ? null : { errors: errors.map((part: ErrorFacts) => errorLine(part)) }),
    }
    if (status === 'failed') this.#logger.error(this.#death(task, entry.at), facts)
    else this.#logger.warn(`task ${task.id} failed${whatNext(set, entry.at)}`, facts)
  }

  #death(task: TaskRecord, at: number): string {
    const lasted = formatDuration(roughly(Math.max(0, at - task.createdAt)))
    const died = `task ${task.id} is dead after ${task.attempts === 1 ? '1 run' : `${task.attempts} runs`}, ${lasted} after it was submitted`
    if (this.#hasSaidWhere || !task.maxRetries || task.retryCount < task.maxRetries) return died
    this.#hasSaidWhere = true
    return `${died}. It had ${task.maxRetries === 1 ? '1 retry' : `${task.maxRetries} retries`}; for more, or longer waits, set maxRetries and retryPolicy ('patient', 'stubborn') on submit, in defineTask or in connect(url, { defaults })`
  }
}

/** Rounds to whole seconds from 10 s on. */
const roughly = (ms: number): number => (ms < 10_000 ? ms : Math.round(ms / 1_000) * 1_000)

const whatNext = ({ status, availableAt }: Change['set'], at: number): string => {
  if (status === 'cancelled') return ' and is cancelled, as requested'
  return availableAt === undefined ? '' : `; it runs again in ${formatDuration(roughly(Math.max(0, availableAt - at)))}`
}
