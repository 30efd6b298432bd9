/** The upkeep that every store needs: fires schedules, takes back leases of dead workers, ends expired tasks, applies retention. */

import type { Retention } from './cleanup/retention.ts'
import { Sweeper } from './cleanup/sweeper.ts'
import type { Queues } from './queues/queues.ts'
import { newOp, type Session } from './session.ts'

/** Fires schedules: see runtime/schedules. */
interface Schedulers {
  start(): void
  stop(): Promise<void>
}

/** Sweeps a store without running tasks: lapsed leases, expired tasks, due schedules, retention. */
export class Monitor {
  readonly #scheduler: Schedulers
  readonly #retention: Retention
  readonly #sweeper: Sweeper
  #isRunning = false

  constructor(session: Session, queues: Queues, retention: Retention, scheduler: Schedulers) {
    this.#scheduler = scheduler
    this.#retention = retention
    this.#sweeper = new Sweeper(session, queues, `${session.name}/monitor-${newOp()}`)
  }

  /** Sweeps until `stop`. */
  start(): this {
    if (this.#isRunning) return this
    this.#isRunning = true
    this.#scheduler.start()
    this.#retention.start()
    this.#sweeper.start()
    return this
  }

  /** Resolves when the sweep in progress has ended. */
  async stop(): Promise<void> {
    if (!this.#isRunning) return
    this.#isRunning = false
    this.#sweeper.stop()
    this.#retention.stop()
    await this.#scheduler.stop()
  }
}
