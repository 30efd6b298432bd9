/** Handlers that did not stop when their signal aborted. Up to a limit, their slots are given to other tasks. Until they settle they are counted and listed. */
import { channel } from 'node:diagnostics_channel'
import { HoldfastError } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import { formatDuration } from '../../core/values/durations.ts'
import type { Cancel } from '../clock.ts'
import type { AbortReason } from '../handler.ts'
import type { Session } from '../session.ts'
import type { Attempt } from './attempt.ts'
import type { Finisher } from './finisher.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { Hooks } from './hooks.ts'
import type { WorkerSettings } from './options.ts'

/** A task whose handler is stuck. Its end has been written, or its lease has lapsed. */
export interface StuckTask {
  /** Of the task. */
  readonly id: string
  /** Of the task. */
  readonly type: string
  /** Of the task. */
  readonly queue: string
  /** The number of the run. */
  readonly attempt: number
  /** When it was found to be stuck. */
  readonly since: Instant
}

export interface StuckHost {
  readonly heartbeat: Heartbeat
  readonly finisher: Finisher
  readonly hooks: Hooks
  readonly running: ReadonlySet<Attempt>
  /** The slot of these attempts is free for other tasks. */
  freed(attempts: readonly Attempt[]): void
  /** As many handlers are stuck as there are slots. */
  allStuck(error: HoldfastError): void
}

/** For gauges: `change` is 1 or -1. */
const changes = channel('holdfast:stuck')

const TOLD: Readonly<Record<AbortReason, string>> = {
  timeout: 'its timeout',
  cancelled: 'it was cancelled',
  'lease-lost': 'its lease was lost',
  shutdown: 'the shutdown',
  parked: 'it was parked',
}

export class StuckHandlers {
  readonly #session: Session
  readonly #settings: WorkerSettings
  readonly #host: StuckHost
  /** Attempts that should stop, in order, with the monotonic time from which each counts as stuck. */
  readonly #told = new Map<Attempt, number>()
  readonly #stuck = new Map<Attempt, StuckTask>()
  /** Attempts of batches that go on for other tasks. Their ends have been written, or their leases have lapsed. */
  readonly #givenUp = new Set<Attempt>()
  #cancel: Cancel | null = null

  constructor(session: Session, settings: WorkerSettings, host: StuckHost) {
    this.#session = session
    this.#settings = settings
    this.#host = host
  }

  /** For the registration. */
  get state(): { readonly stuck: readonly StuckTask[]; readonly stuckSlots: number; readonly claiming: boolean } {
    return { stuck: [...this.#stuck.values()], stuckSlots: this.#slots, claiming: !this.isFull }
  }

  /** The slots that stuck handlers had: a batch had one. */
  get #slots(): number {
    return new Set([...this.#stuck.keys()].map((attempt) => attempt.batch ?? attempt)).size
  }

  /** As many handlers are stuck as there are slots: the worker claims nothing. */
  get isFull(): boolean {
    const { concurrency } = this.#settings
    return this.#stuck.size >= concurrency && this.#slots >= concurrency
  }

  /** Called when its signal has aborted or its child is being killed. A shutdown is not watched: `stop` has its own limits. */
  watch(attempt: Attempt): void {
    // An isolated run that only had its signal aborted is killed after its grace period.
    const willBeKilled = attempt.killer !== null && !attempt.isKilled
    if (willBeKilled || attempt.abortedFor === 'shutdown') return
    if (this.#told.has(attempt) || !this.#host.running.has(attempt)) return
    this.#told.set(attempt, this.#session.clock.mono() + this.#settings.stuckAfter)
    this.#arm()
  }

  /** Returns true if the attempt was stuck. */
  settled(attempt: Attempt): boolean {
    this.#told.delete(attempt)
    this.#givenUp.delete(attempt)
    if (!this.#stuck.delete(attempt)) return false
    changes.publish({ task: attempt.record, change: -1 })
    return true
  }

  close(): void {
    this.#cancel?.()
    this.#told.clear()
  }

  #arm(): void {
    const [first] = this.#told.values()
    if (this.#cancel !== null || first === undefined) return
    this.#cancel = this.#session.clock.after(first - this.#session.clock.mono(), () => {
      this.#cancel = null
      this.#look()
      this.#arm()
    })
  }

  #look(): void {
    const now = this.#session.clock.mono()
    const { stuckAfter } = this.#settings
    for (const [attempt, at] of this.#told) {
      if (at > now) return
      this.#told.delete(attempt)
      // Contact came back before another worker took the task: the run may complete. Perhaps it is lost again, but not for so long.
      const isKept = !attempt.isTimedOut && this.#host.heartbeat.keptWithin(attempt, stuckAfter)
      if (attempt.abortedFor === 'lease-lost' && isKept) this.watch(attempt)
      else this.#giveUp(attempt)
    }
  }

  #giveUp(attempt: Attempt): void {
    const { batch } = attempt
    if (batch === null) {
      this.#isStuck([attempt])
      return
    }
    this.#givenUp.add(attempt)
    this.#end(attempt)
    const running = batch.members.filter((member) => this.#host.running.has(member))
    // While its batch goes on for other tasks, it keeps its slot.
    if (running.every((member) => this.#givenUp.has(member))) this.#isStuck(running)
  }

  /** `attempts`: one, or all of a batch that have not settled. */
  #isStuck(attempts: readonly Attempt[]): void {
    const { stuckAfter, concurrency } = this.#settings
    for (const attempt of attempts) {
      const { id, type, queue, attempts: n } = attempt.record
      this.#stuck.set(attempt, { id, type, queue, attempt: n, since: this.#session.time.now() })
      changes.publish({ task: attempt.record, change: 1 })
    }
    const { batch, record, abortedFor } = attempts.at(-1)!
    const what = batch === null ? `the handler of '${record.type}'` : `the batch handler of '${record.type}'`
    const since = `${formatDuration(stuckAfter)} after ${TOLD[abortedFor!]}`
    this.#session.logger.warn(
      `${what} is stuck: it has not settled ${since}; others get its slot (${this.#slots} stuck, ${concurrency} slots)`,
      batch === null
        ? { task: record.id, attempt: record.attempts }
        : { tasks: attempts.map((attempt) => attempt.record.id) },
    )
    for (const attempt of attempts) {
      this.#end(attempt)
      this.#host.hooks.stuck(attempt)
    }
    this.#host.freed(attempts)
    if (this.isFull) this.#full()
  }

  /** A later result is ignored. After a cancel the end is written now; a lost lease is no longer renewed. */
  #end(attempt: Attempt): void {
    if (attempt.isWritten) return
    attempt.isWritten = true
    if (attempt.isTimedOut) this.#host.finisher.timeOut(attempt)
    else if (attempt.abortedFor === 'cancelled')
      this.#host.finisher.abandon(attempt, didNotStop(attempt.record.id, this.#settings.stuckAfter))
    else this.#host.heartbeat.drop(attempt)
  }

  #full(): void {
    const error = allStuck(this.#settings.id, this.state.stuck, this.#slots)
    this.#session.logger.error(`${error.message}: it takes no new tasks`)
    this.#host.allStuck(error)
  }
}

const didNotStop = (id: string, after: number): HoldfastError =>
  new HoldfastError('HANDLER_STUCK', `did not stop within ${formatDuration(after)} of its cancel`, { id })

const allStuck = (worker: string, tasks: readonly StuckTask[], slots: number): HoldfastError => {
  const types = [...new Set(tasks.map(({ type }) => `'${type}'`))].join(', ')
  return new HoldfastError(
    'WORKER_STUCK',
    `${slots} handlers of worker ${worker} are stuck, as many as it has slots (${types})`,
    { worker, tasks: tasks.map(({ id }) => id) },
  )
}
