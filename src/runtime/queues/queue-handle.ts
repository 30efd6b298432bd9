/** The public API of one queue: `client.queue(name)`. */
import type { LimitOptions } from '../../core/flow/limits.ts'
import type { QueueLimits } from '../../core/flow/queue-flow.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import type { CallOptions } from '../abortable.ts'
import type { Session } from '../session.ts'
import { type PauseOptions, Queues, type ResumeOptions } from './queues.ts'

/** What can be done with one queue: pause, resume, limit. */
export interface QueueHandle {
  /**
   * Every worker sees the pause within 5 s: running tasks continue, prefetched ones are released. A pause without `until` takes precedence
   * over one with it; of two with `until`, the later one applies.
   */
  pause(options?: PauseOptions & CallOptions): Promise<void>
  /** Ends a pause. Workers claim again within 5 s. */
  resume(options?: ResumeOptions & CallOptions): Promise<void>
  /**
   * Sets the limits of the queue for all workers and every way to claim, replacing earlier ones; null removes them. Every worker sees them within 5 s.
   * docs/flow-control.md explains what each one promises.
   */
  limit(limits: LimitOptions | null, options?: CallOptions): Promise<void>
  /** null if it has none. */
  limits(options?: CallOptions): Promise<QueueLimits | null>
  /** True while the whole queue is paused; a paused group does not count. */
  isPaused(): Promise<boolean>
  /** Removes an unused queue from the list of queues. Its tasks, if any, stay. */
  forget(): Promise<void>
}

interface Signalled {
  readonly signal?: AbortSignal | undefined
}

const PAUSE_OPTIONS: ReadonlySet<string> = new Set<keyof PauseOptions>(['reason', 'until', 'group'])
const RESUME_OPTIONS: ReadonlySet<string> = new Set<keyof ResumeOptions>(['force', 'group'])

const checkPause = (options: PauseOptions): PauseOptions => {
  checkOptionNames(options, PAUSE_OPTIONS, 'pause')
  return options
}

/** `open` runs the work if the client is open, and rejects otherwise. */
export const queueHandle = (
  queues: Queues,
  queue: string,
  open: <T>(work: (session: Session) => Promise<T>, options?: Signalled) => Promise<T>,
): QueueHandle => {
  /** Writes under the caller's signal and name; then this process sees what it wrote. */
  const change = (options: Signalled, work: (some: Queues) => Promise<void>): Promise<void> =>
    open(async (session) => {
      if (queues.isOf(session)) return work(queues)
      await work(new Queues(session))
      await queues.refresh()
    }, options)
  const checkResume = (options: ResumeOptions): ResumeOptions => {
    checkOptionNames(options, RESUME_OPTIONS, 'resume')
    return options
  }
  return {
    pause: ({ signal, ...options } = {}) => change({ signal }, async (some) => some.pause(queue, checkPause(options))),
    resume: ({ signal, ...options } = {}) =>
      change({ signal }, async (some) => some.resume(queue, checkResume(options))),
    limit: (limits, options = {}) =>
      change(options, async (some) => {
        await some.limit(queue, limits)
      }),
    limits: (options = {}) =>
      open(async () => {
        await queues.refresh()
        return queues.limits.of(queue)
      }, options),
    isPaused: () => open(async () => (await queues.refresh()).has(queue)),
    forget: () => open(() => queues.forget(queue)),
  }
}
