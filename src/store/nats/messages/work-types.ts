/**
 * The work types of each queue, so that a survey knows which consumers to pull from. All types of one priority share a
 * consumer. Only a type that some worker of the queue does not handle gets a consumer of its own.
 */

import type { Connected } from '../connection/connection.ts'
import { isWrongSequence } from '../connection/errors.ts'
import { ALL_TYPES, parseWorkType, type Subjects, type WorkType, workTypeKey } from '../subjects.ts'
import type { Announcements } from './announcements.ts'

const TYPES = 'types/'
/** New work types are announced. The list finds those whose announcement was lost. */
const LIST_EVERY = 10_000
/** After this time a type shares the consumer again, in case all workers of the queue handle it by now. */
const SEPARATE_FOR = 600_000

export class WorkTypes {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #announcements: Announcements
  readonly #queues = new Map<string, Map<string, WorkType>>()
  readonly #written = new Map<string, Promise<void>>()
  /** Monotonic: until when the type has a consumer of its own. */
  readonly #separateUntil = new Map<string, number>()
  #listedAt = Number.NEGATIVE_INFINITY
  #listing: Promise<void> | null = null

  constructor(connected: Connected, subjects: Subjects, announcements: Announcements) {
    this.#connected = connected
    this.#subjects = subjects
    this.#announcements = announcements
    announcements.on('type', (key) => this.#remember(key))
    announcements.on('separate', (key) => this.#markSeparate(key))
    // Announcements may have been missed.
    connected.onReconnect(() => {
      this.#listedAt = Number.NEGATIVE_INFINITY
    })
  }

  #remember(key: string): void {
    const type = parseWorkType(key)
    const known = this.#queues.get(type.queue) ?? new Map<string, WorkType>()
    this.#queues.set(type.queue, known)
    known.set(key, type)
  }

  #markSeparate(key: string): void {
    this.#remember(key)
    this.#separateUntil.set(key, performance.now() + SEPARATE_FOR)
  }

  /** The work type whose consumer delivers a new message of this type. */
  groupOf(type: WorkType): WorkType {
    const isSeparate = (this.#separateUntil.get(workTypeKey(type)) ?? 0) > performance.now()
    return isSeparate ? type : { ...type, type: ALL_TYPES }
  }

  /** Some worker of the queue does not handle the type: from now on it has a consumer of its own. */
  separate(type: WorkType): Promise<void> {
    const key = workTypeKey(type)
    this.#markSeparate(key)
    this.#announcements.send('separate', key)
    return this.add(type)
  }

  /** Makes the work type known to all processes. */
  add(type: WorkType): Promise<void> {
    const key = workTypeKey(type)
    const written = this.#written.get(key)
    if (written !== undefined) return written
    this.#remember(key)
    const writing = this.#write(key)
    this.#written.set(key, writing)
    writing.catch(() => this.#written.delete(key))
    return writing
  }

  async #write(key: string): Promise<void> {
    try {
      await this.#connected.requests.write(this.#subjects.ofKey(TYPES + key), '', { last: 0 })
      this.#announcements.send('type', key)
    } catch (error) {
      if (!isWrongSequence(error)) throw error
    }
  }

  async ofQueue(queue: string): Promise<readonly WorkType[]> {
    if (performance.now() - this.#listedAt > LIST_EVERY) {
      this.#listing ??= this.#list().finally(() => {
        this.#listing = null
      })
      await this.#listing
    }
    return [...(this.#queues.get(queue)?.values() ?? [])]
  }

  async #list(): Promise<void> {
    const begun = performance.now()
    const filter = this.#subjects.under(TYPES)
    for (const subject of await this.#connected.subjectsIn(this.#subjects.kv, filter))
      this.#remember(this.#subjects.toKey(subject).slice(TYPES.length))
    this.#listedAt = begun
  }
}
