/**
 * Bells that the server has handed out and forgotten: a server killed with kill -9 may lose what it knew of them, and would never hand
 * them out again. They are still in the stream, so looking there now and then finds them; the truth says what is to be done.
 */
import type { ServerClock } from './clock.ts'
import type { Connected } from './connection.ts'
import { isNotFound } from './errors.ts'
import { type Kind, kindKey, type Subjects } from './subjects.ts'

interface Walk {
  /** Monotonic. */
  lookedAt: number
  walkedAt: number
  /** Where the next one begins: the sequence of a bell. */
  from: number
  isUnderWay: boolean
  /** Not yet asked for. */
  found: string[]
}

/** A glance costs two questions: is anything left of what counts as acknowledged? */
const LOOK_EVERY = 2_000
/** Beside a task that takes long, only reading all that was handed out shows what was forgotten. */
const WALK_EVERY = 30_000
/** A server that has come back is the one that may have forgotten. */
const AFTER_RETURN = 6_000
/** Bells of one walk; the next one goes on from there. */
const MOST = 50
/** A bell that is younger may be on its way. */
const LEAST_AGE = 4_000

export class Strays {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #clock: ServerClock
  readonly #walks = new Map<string, Walk>()

  constructor(connected: Connected, subjects: Subjects, clock: ServerClock) {
    this.#connected = connected
    this.#subjects = subjects
    this.#clock = clock
    void this.#watchConnection()
  }

  async #watchConnection(): Promise<void> {
    for await (const { type } of this.#connected.nc.status()) {
      if (type !== 'reconnect') continue
      const walkedAt = performance.now() - WALK_EVERY + AFTER_RETURN
      for (const walk of this.#walks.values()) walk.walkedAt = Math.min(walk.walkedAt, walkedAt)
    }
  }

  /** Hints of this kind whose bells were handed out a while ago, to whomever, as far as they have been found. */
  find(kind: Kind): string[] {
    const now = performance.now()
    const walk: Walk = this.#walks.get(kindKey(kind)) ?? {
      lookedAt: now,
      walkedAt: now - WALK_EVERY + AFTER_RETURN,
      from: 1,
      isUnderWay: false,
      found: [],
    }
    this.#walks.set(kindKey(kind), walk)
    if (!walk.isUnderWay && now - walk.lookedAt > LOOK_EVERY) {
      walk.isUnderWay = true
      walk.lookedAt = now
      // Beside the look, which does not wait for it. What fails now is tried again.
      this.#look(kind, walk)
        .catch(() => {})
        .finally(() => {
          walk.isUnderWay = false
        })
    }
    return walk.found.splice(0)
  }

  async #look(kind: Kind, walk: Walk): Promise<void> {
    const { streams, consumers } = this.#connected.jsm
    const { state } = await streams.info(this.#subjects.bells)
    const name = this.#subjects.consumerOf(kind)
    const { delivered, ack_floor } = await consumers.info(this.#subjects.bells, name)
    const isDue = performance.now() - walk.walkedAt > WALK_EVERY
    if (!isDue && (state.messages === 0 || state.first_seq > ack_floor.stream_seq)) return
    if (isDue) walk.walkedAt = performance.now()
    const { at: now } = await this.#clock.now()
    for (let steps = 0; steps < MOST; steps++) {
      const bell = await this.#next(kind, walk.from)
      if (bell === null || bell.seq > delivered.stream_seq || now - bell.time.getTime() < LEAST_AGE) {
        walk.from = 1
        return
      }
      walk.found.push(this.#subjects.hintOfBell(bell.subject))
      walk.from = bell.seq + 1
    }
    // There are more: the next glance goes on.
    walk.walkedAt = Number.NEGATIVE_INFINITY
  }

  async #next(kind: Kind, seq: number) {
    try {
      const query = { seq, next_by_subj: this.#subjects.bellsOf(kind) }
      return await this.#connected.jsm.streams.getMessage(this.#subjects.bells, query)
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }
}
