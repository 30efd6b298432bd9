/**
 * Moves overdue tasks in queues that no worker of this process looks at. Lapsed leases and expired tasks must not wait for a worker of
 * their queue: the queue may be paused, or no worker may serve it.
 */
import { SWEEP } from '../../core/storage/document-names.ts'
import type { Cancel } from '../clock.ts'
import { editDocument } from '../documents.ts'
import { sweep } from '../queues/look.ts'
import type { Queues } from '../queues/queues.ts'
import type { Session } from '../session.ts'

/** The interval on stores where one look finds the overdue tasks of all queues. */
const EVERY = 2_000
/** The interval on stores where each queue needs a look. One process at a time does it. */
const EVERY_QUEUE = 60_000
/** How soon to look again for leases that may not be taken yet. */
const LEFT_ALONE = 100

export class Sweeper {
  readonly #session: Session
  readonly #queues: Queues
  readonly #by: string
  #cancel: Cancel = () => {}
  #isRunning = false
  /** Overdue tasks that the last sweep might not move yet. */
  #leftAlone = 0
  readonly #first = Promise.withResolvers<void>()

  /** `by` is the actor of the moves. */
  constructor(session: Session, queues: Queues, by: string) {
    this.#session = session
    this.#queues = queues
    this.#by = by
  }

  /** Resolves after the first sweep, also if it failed, or when there will be none. */
  get firstSweep(): Promise<void> {
    return this.#first.promise
  }

  /** `served` are the queues that a worker of this process looks at. If there are any, a store that reports all queues needs no sweeps. */
  start(served: readonly string[] = []): void {
    const coversAll = this.#session.store.capabilities.has('due-of-all-queues')
    if (coversAll && served.length > 0) this.#first.resolve()
    if (this.#isRunning || (coversAll && served.length > 0)) return
    this.#isRunning = true
    const every = coversAll ? EVERY : EVERY_QUEUE
    const sweepAll = coversAll ? () => this.#sweep('default') : () => this.#lookAtOthers(served)
    const { clock, contact } = this.#session
    const tickAfter = (delay: number): void => {
      const since = clock.mono()
      this.#cancel = clock.after(delay, () => {
        contact.woke(since, delay)
        tick()
      })
    }
    const tick = (): void => {
      this.#leftAlone = 0
      void sweepAll()
        .catch((error: unknown) =>
          this.#session.logger.warn(`cannot look for overdue tasks: ${error instanceof Error ? error.message : error}`),
        )
        .finally(() => {
          this.#first.resolve()
          if (this.#isRunning) tickAfter(this.#leftAlone > 0 ? LEFT_ALONE : every)
        })
    }
    tickAfter(0)
  }

  stop(): void {
    this.#isRunning = false
    this.#cancel()
    this.#first.resolve()
  }

  async #sweep(queue: string): Promise<void> {
    this.#leftAlone += await sweep(this.#session, { queue, by: this.#by, isStopped: () => !this.#isRunning })
  }

  async #lookAtOthers(served: readonly string[]): Promise<void> {
    const others = (await this.#queues.names()).filter((queue) => !served.includes(queue))
    if (others.length === 0 || !(await this.#isOurTurn())) return
    for (const queue of others) if (this.#isRunning) await this.#sweep(queue)
  }

  /** False if another process has just looked: it has seen what this one would see. */
  async #isOurTurn(): Promise<boolean> {
    const now = this.#session.time.now()
    let isOurs = false
    await editDocument(this.#session, SWEEP, (text) => {
      const { by, until } = text === null ? { by: this.#by, until: 0 } : (JSON.parse(text) as Turn)
      isOurs = by === this.#by || until <= now
      return isOurs ? JSON.stringify({ by: this.#by, until: now + 1.5 * EVERY_QUEUE } satisfies Turn) : text
    })
    return isOurs
  }
}

interface Turn {
  readonly by: string
  readonly until: number
}
