/** The consumers that deliver ready messages: one for each work type, created when it is first needed. */
import type { Connected } from '../connection/connection.ts'
import { type Subjects, type WorkType, workTypeKey } from '../subjects.ts'

/**
 * Without a progress report for this long the server delivers a message again. Shorter than a lease, so that a lapsed lease
 * is found in time.
 */
const ACK_WAIT = 2_000
const NANOSECONDS = 1_000_000
const HOUR = 3_600_000

export class ReadyConsumers {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #names = new Map<string, Promise<string>>()

  constructor(connected: Connected, subjects: Subjects) {
    this.#connected = connected
    this.#subjects = subjects
  }

  nameOf(type: WorkType): Promise<string> {
    const key = workTypeKey(type)
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const created = this.#create(type)
    this.#names.set(key, created)
    created.catch(() => this.#names.delete(key))
    return created
  }

  /** The consumer no longer exists: create it again when it is needed. */
  forget(type: WorkType): void {
    this.#names.delete(workTypeKey(type))
  }

  async #create(type: WorkType): Promise<string> {
    const name = this.#subjects.consumerOf(type)
    await this.#connected.jsm.consumers.add(this.#subjects.ready, {
      name,
      durable_name: name,
      filter_subject: this.#subjects.messagesOf(type),
      ack_policy: 'explicit',
      ack_wait: ACK_WAIT * NANOSECONDS,
      // No limit on messages in progress, and no limit on deliveries.
      max_ack_pending: -1,
      max_deliver: -1,
      inactive_threshold: HOUR * NANOSECONDS,
    })
    return name
  }
}
