/** Fires the schedules of a store while any worker of this client runs. Sleeps until the next slot or a change. */
import { SCHEDULE } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import type { Document } from '../../store/store.ts'
import { type Cancel, pause } from '../clock.ts'
import { newOp, type Session } from '../session.ts'
import type { Submitter } from '../submit/submitter.ts'
import { SlotRunner } from './slot-runner.ts'

/** How often documents are read again: schedules may be made and changed by other processes. */
const LOOK_EVERY = 3_000
/** How long stop waits for a look in flight. If it is cut off, the next scheduler continues where it ended. */
const STOP_PATIENCE = 1_000

export class Scheduler {
  readonly #session: Session
  readonly runner: SlotRunner
  #users = 0
  #looking: Promise<void> | null = null
  /** Another look was requested during the current one. */
  #again = false
  #cancel: Cancel = () => {}
  #unsubscribe: Cancel = () => {}
  /** Problems that were logged, so that each is logged once and not at every look. */
  readonly #troubles = new Set<string>()

  constructor(session: Session, submitter: Submitter) {
    this.#session = session
    this.runner = new SlotRunner(session, submitter, newOp())
  }

  start(): void {
    if (this.#users++ > 0) return
    // null means that anything may have changed, including the schedules.
    this.#unsubscribe = this.#session.store.wake((queues) => {
      if (queues === null) this.nudge()
    })
    this.nudge()
  }

  async stop(): Promise<void> {
    if (--this.#users > 0) return
    this.#unsubscribe()
    this.#cancel()
    if (this.#looking !== null) await Promise.race([this.#looking, pause(this.#session.clock, STOP_PATIENCE)])
  }

  /** Resolves when a look that begins now has fired what is due. */
  async fireDue(): Promise<void> {
    await this.#looking
    this.nudge()
    await this.#looking
  }

  /** Something changed: look at once. */
  nudge(): void {
    if (this.#users === 0) return
    if (this.#looking !== null) {
      this.#again = true
      return
    }
    this.#cancel()
    this.#looking = this.#look().then((next) => {
      this.#looking = null
      if (this.#users === 0) return
      const wait = this.#again ? 0 : Math.min(Math.max(0, next - this.#session.time.now()), LOOK_EVERY)
      this.#again = false
      this.#cancel = this.#session.clock.after(wait, () => this.nudge())
    })
  }

  /** Resolves with the time of the next look. Never rejects. */
  async #look(): Promise<Instant> {
    const { store, time } = this.#session
    let next = Number.POSITIVE_INFINITY
    try {
      if (time.isOld) await time.anchor()
      const documents = await store.documents.list(SCHEDULE)
      const each = await Promise.all(documents.map((document) => this.#run(document)))
      for (const instant of each) if (instant !== null) next = Math.min(next, instant)
      if (this.#troubles.delete(SCHEDULE)) this.#session.logger.info('schedules fire again')
    } catch (error) {
      this.#complain(SCHEDULE, `schedules do not fire until the store answers: ${messageOf(error)}`)
    }
    return next
  }

  /** A schedule that cannot be read or fired does not delay the others. */
  async #run(document: Document): Promise<Instant | null> {
    try {
      const { next } = await this.runner.run(document)
      this.#troubles.delete(document.name)
      return next
    } catch (error) {
      const id = document.name.slice(SCHEDULE.length)
      this.#complain(document.name, `schedule '${id}' could not fire: ${messageOf(error)}`)
      return null
    }
  }

  #complain(about: string, message: string): void {
    if (this.#users > 0 && !this.#troubles.has(about)) this.#session.logger.error(message)
    this.#troubles.add(about)
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
