/** The children of a worker: kept warm, reused by the handlers of one module, never more than there are slots. */

import { HoldfastError } from '../../../core/errors.ts'
import { formatDuration } from '../../../core/values/durations.ts'
import { EncodedOutput } from '../../../core/values/output.ts'
import type { Payload } from '../../../core/values/payload.ts'
import { type Cancel, soon } from '../../clock.ts'
import type { Session } from '../../session.ts'
import type { Attempt } from '../attempt.ts'
import { ChildHandle } from './child-handle.ts'
import type { Isolation } from './options.ts'
import { crossing } from './protocol.ts'
import { StepCalls } from './step-calls.ts'

/** A child that is not ready after this long is killed. This time does not count against the task's timeout. */
export const START_LIMIT = 30_000
/** A child that was idle for this long is stopped. */
const IDLE_LIMIT = 60_000
/** How long a stopping worker waits for killed children. */
const DEATH_LIMIT = 1_000

export class IsolatedChildren {
  readonly #session: Session
  readonly #most: number
  readonly #busy = new Set<ChildHandle>()
  /** In order of last use. */
  #idle: ChildHandle[] = []
  #runs = 0
  #cancelSweep: Cancel | null = null

  constructor(session: Session, most: number) {
    this.#session = session
    this.#most = most
  }

  /** `input` is the input as parsed by the schema; null: use the task's. */
  async run(isolation: Isolation, input: Payload | null, attempt: Attempt): Promise<EncodedOutput> {
    const child = this.#take(isolation)
    let stopListening = (): void => {}
    const calls = new StepCalls(attempt, (message) => child.send(message))
    try {
      // Before the run has begun there is nothing to kill: a child that is no longer needed stays for the next run.
      await this.#untilReady(child, attempt.signal)
      attempt.killer = () => child.kill()
      attempt.begun()
      stopListening = this.#obey(attempt, child, isolation.grace)
      const { output } = await child.run(
        {
          kind: 'run',
          run: ++this.#runs,
          module: isolation.module,
          export: isolation.export,
          task: crossing(attempt.record),
          input: input?.text ?? null,
          encoding: input?.encoding ?? 'json',
          workerId: attempt.workerId,
          maxPayload: this.#session.maxPayload,
        },
        {
          progress: (progress) => attempt.progress(JSON.parse(progress)),
          log: ({ level, message, facts }) => attempt.log[level](message, JSON.parse(facts)),
          called: ({ run, n, ask }) => void calls.answer(run, n, ask),
          verdict: ({ n, why }) => calls.verdict(n, why),
        },
      )
      return new EncodedOutput(output)
    } catch (error) {
      throw child.isUsable || !attempt.isKilled ? error : endOf(attempt, isolation)
    } finally {
      stopListening()
      attempt.killer = null
      this.#giveBack(child)
    }
  }

  /** Kills all children. Resolves when they are dead, or after DEATH_LIMIT. */
  async close(): Promise<void> {
    this.#cancelSweep?.()
    const all = [...this.#busy, ...this.#idle.splice(0)]
    if (all.length === 0) return
    for (const child of all) child.kill()
    const late = Promise.withResolvers<void>()
    const cancel = this.#session.clock.after(DEATH_LIMIT, late.resolve)
    await Promise.race([Promise.all(all.map(({ dead }) => dead)), late.promise])
    cancel()
    // By then the runs of the killed children have settled.
    await new Promise<void>((done) => soon(done))
  }

  #take(isolation: Isolation): ChildHandle {
    this.#idle = this.#idle.filter(({ isUsable }) => isUsable)
    const at = this.#idle.findLastIndex((child) => isSame(child.isolation, isolation))
    const [warm] = at === -1 ? [] : this.#idle.splice(at, 1)
    // The least recently used child makes room.
    if (warm === undefined && this.#busy.size + this.#idle.length >= this.#most) this.#idle.shift()?.kill()
    const child =
      warm ??
      new ChildHandle(isolation, ({ message }) => this.#session.logger.warn(message, { module: isolation.module }))
    this.#busy.add(child)
    return child
  }

  #giveBack(child: ChildHandle): void {
    this.#busy.delete(child)
    if (!child.isUsable) return
    child.idleSince = this.#session.clock.mono()
    this.#idle.push(child)
    this.#sweepLater()
  }

  #sweepLater(): void {
    if (this.#cancelSweep !== null || this.#idle.length === 0) return
    this.#cancelSweep = this.#session.clock.after(IDLE_LIMIT, () => {
      this.#cancelSweep = null
      const since = this.#session.clock.mono() - IDLE_LIMIT
      for (const child of this.#idle) if (child.idleSince <= since) child.kill()
      this.#idle = this.#idle.filter(({ isUsable }) => isUsable)
      this.#sweepLater()
    })
  }

  async #untilReady(child: ChildHandle, signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<never>()
    const abort = (): void => aborted.reject(signal.reason)
    let isLate = false
    const cancel = this.#session.clock.after(START_LIMIT, () => {
      isLate = true
      child.kill()
    })
    signal.addEventListener('abort', abort, { once: true })
    try {
      signal.throwIfAborted()
      await Promise.race([child.ready, aborted.promise])
    } catch (error) {
      throw isLate ? notReady(child.isolation) : error
    } finally {
      cancel()
      signal.removeEventListener('abort', abort)
    }
  }

  /** Forwards a cancel, a shutdown or a park to the child. After a cancel or a park, kills it when its grace period is over. For the other reasons see Attempt.kill. */
  #obey(attempt: Attempt, child: ChildHandle, grace: number): () => void {
    const { signal } = attempt
    let cancel: Cancel = () => {}
    const obey = (): void => {
      const reason = attempt.abortedFor!
      if (reason === 'cancelled' || reason === 'shutdown' || reason === 'parked') child.abort(reason)
      if (reason === 'cancelled' || reason === 'parked') cancel = this.#session.clock.after(grace, () => attempt.kill())
    }
    signal.addEventListener('abort', obey, { once: true })
    return () => {
      cancel()
      signal.removeEventListener('abort', obey)
    }
  }
}

const notReady = ({ kind, module }: Isolation): HoldfastError =>
  new HoldfastError(
    'HANDLER_CRASHED',
    `the handler's ${kind} has not loaded ${module} within ${formatDuration(START_LIMIT)}`,
  )

const isSame = (one: Isolation, other: Isolation): boolean =>
  one.kind === other.kind && one.module === other.module && one.heap === other.heap

/** Why it was killed. */
const endOf = (attempt: Attempt, { grace }: Isolation): HoldfastError => {
  const { id } = attempt.record
  if (attempt.abortedFor === 'cancelled')
    return new HoldfastError('HANDLER_STUCK', `did not stop within ${formatDuration(grace)} of its cancel: killed`, {
      id,
    })
  return new HoldfastError('HANDLER_CRASHED', `killed: ${attempt.abortedFor}`, { id })
}
