/** Handles a store that does not answer: all queues of a worker share one series of retries with growing pauses, and a line is logged at intervals. */
import { formatDuration } from '../../../core/values/durations.ts'
import { pause } from '../../clock.ts'
import type { Session } from '../../session.ts'

const FIRST_WAIT = 100
const LONGEST_WAIT = 5_000
const TELL_EVERY = 60_000

export class Outage {
  readonly #session: Session
  readonly #over = new AbortController()
  #failures = 0
  /** Monotonic. */
  #since = 0
  #toldAt = 0
  #waiting: Promise<void> | null = null

  constructor(session: Session) {
    this.#session = session
  }

  /** Looks that fail at the same time share one wait. */
  wait(error: unknown): Promise<void> {
    this.#waiting ??= this.#waitOut(error).finally(() => {
      this.#waiting = null
    })
    return this.#waiting
  }

  async #waitOut(error: unknown): Promise<void> {
    const { clock, random, logger } = this.#session
    const now = clock.mono()
    const why = error instanceof Error ? error.message : String(error)
    if (this.#failures++ === 0) {
      this.#since = now
      this.#toldAt = now
      logger.warn(`cannot look for work: ${why}; trying again`)
    } else if (now - this.#toldAt >= TELL_EVERY) {
      this.#toldAt = now
      logger.warn(`cannot look for work for ${this.#lasted(now)}: ${why}; still trying`)
    }
    const longest = Math.min(FIRST_WAIT * 2 ** this.#failures, LONGEST_WAIT)
    await pause(clock, longest * (0.5 + random() / 2), this.#over.signal)
  }

  /** The store answers again. */
  ended(): void {
    if (this.#failures === 0) return
    this.#failures = 0
    const { clock, logger } = this.#session
    logger.info(`looking for work again, after ${this.#lasted(clock.mono())}`)
  }

  /** Stops retrying. */
  stop(): void {
    this.#over.abort()
  }

  #lasted(now: number): string {
    return formatDuration(Math.max(1_000, Math.round((now - this.#since) / 1_000) * 1_000))
  }
}
