/**
 * Finds deliveries that the server has forgotten. A server that was killed may forget which messages it had delivered and
 * never deliver them again. The messages are still in the stream, so reading the stream now and then finds them. The task's
 * record decides what to do.
 */
import type { StreamState } from '@nats-io/jetstream'
import type { ServerClock } from '../clock.ts'
import type { Connected } from '../connection/connection.ts'
import { isNotFound } from '../connection/errors.ts'
import { type Subjects, type WorkType, workTypeKey } from '../subjects.ts'

interface Walk {
  /** Monotonic. */
  checkedAt: number
  walkedAt: number
  /** The sequence at which the next walk begins. */
  from: number
  isUnderWay: boolean
  /** Not returned yet. */
  found: string[]
}

/**
 * How often to check whether messages are left that count as acknowledged. For an empty stream one request covers all work
 * types.
 */
const CHECK_EVERY = 4_000
/** While a long task runs, only reading all delivered messages shows which ones were forgotten. */
const WALK_EVERY = 30_000
/** The first walk after a reconnect: a restarted server may have forgotten deliveries. */
const AFTER_RECONNECT = 6_000
/** Messages of one walk. The next walk continues from there. */
const MOST = 50
/** A younger message may be on its way. */
const LEAST_AGE = 4_000

export class LostDeliveries {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #clock: ServerClock
  readonly #walks = new Map<string, Walk>()
  #state: { readonly at: number; readonly read: Promise<StreamState> } | null = null

  constructor(connected: Connected, subjects: Subjects, clock: ServerClock) {
    this.#connected = connected
    this.#subjects = subjects
    this.#clock = clock
    connected.onReconnect(() => this.#reconnected())
  }

  #reconnected(): void {
    const walkedAt = performance.now() - WALK_EVERY + AFTER_RECONNECT
    for (const walk of this.#walks.values()) {
      walk.walkedAt = Math.min(walk.walkedAt, walkedAt)
      walk.checkedAt = Math.min(walk.checkedAt, performance.now())
    }
  }

  /** Hints of this type whose messages were delivered a while ago, to any process, as far as walks have found them. */
  find(type: WorkType): string[] {
    const now = performance.now()
    const walk: Walk = this.#walks.get(workTypeKey(type)) ?? {
      checkedAt: now,
      walkedAt: now - WALK_EVERY + AFTER_RECONNECT,
      from: 1,
      isUnderWay: false,
      found: [],
    }
    this.#walks.set(workTypeKey(type), walk)
    if (!walk.isUnderWay && now - walk.checkedAt > CHECK_EVERY) {
      walk.isUnderWay = true
      walk.checkedAt = now
      // Runs in the background. A failed walk is repeated.
      this.#walk(type, walk)
        .catch(() => {})
        .finally(() => {
          walk.isUnderWay = false
        })
    }
    return walk.found.splice(0)
  }

  /** Shared by all work types. */
  #streamState(): Promise<StreamState> {
    const now = performance.now()
    if (this.#state === null || now - this.#state.at > CHECK_EVERY / 2) {
      const read = this.#connected.jsm.streams.info(this.#subjects.ready).then(({ state }) => state)
      this.#state = { at: now, read }
    }
    return this.#state.read
  }

  async #walk(type: WorkType, walk: Walk): Promise<void> {
    const state = await this.#streamState()
    if (state.messages === 0) return
    const name = this.#subjects.consumerOf(type)
    const { delivered, ack_floor } = await this.#connected.jsm.consumers.info(this.#subjects.ready, name)
    const isDue = performance.now() - walk.walkedAt > WALK_EVERY
    if (!isDue && state.first_seq > ack_floor.stream_seq) return
    if (isDue) walk.walkedAt = performance.now()
    const { at: now } = await this.#clock.now()
    for (let steps = 0; steps < MOST; steps++) {
      const message = await this.#next(type, walk.from)
      if (message === null || message.seq > delivered.stream_seq || now - message.time.getTime() < LEAST_AGE) {
        // The stream has only messages of other types, or messages on their way.
        if (walk.from === 1) walk.checkedAt += WALK_EVERY - CHECK_EVERY
        walk.from = 1
        return
      }
      walk.found.push(this.#subjects.hintOfMessage(message.subject))
      walk.from = message.seq + 1
    }
    // There are more: the next check continues.
    walk.walkedAt = Number.NEGATIVE_INFINITY
  }

  async #next(type: WorkType, seq: number) {
    try {
      const query = { seq, next_by_subj: this.#subjects.messagesOf(type) }
      return await this.#connected.jsm.streams.getMessage(this.#subjects.ready, query)
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }
}
