/**
 * Bells that the server has handed out and forgotten: a server killed with kill -9 may lose what it knew of them, and would never hand
 * them out again. They are still in the stream, so looking there now and then finds them; the truth says what is to be done.
 */
import type { ServerClock } from './clock.ts'
import type { Connected } from './connection.ts'
import { isConsumerNotFound, isNotFound } from './errors.ts'
import { type Kind, kindKey, type Subjects } from './subjects.ts'

interface Walk {
  /** Monotonic. */
  lookedAt: number
  /** Where the next one begins: the sequence of a bell. */
  from: number
}

const LOOK_EVERY = 2_000
/** Bells of one look. What takes longer than a moment is acknowledged and gone, so there are not many. */
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
  }

  /** Hints of this kind whose bells were handed out a while ago, to whomever; a few at a time, all of them in the end. */
  async find(kind: Kind): Promise<string[]> {
    const walk = this.#walks.get(kindKey(kind)) ?? { lookedAt: performance.now(), from: 1 }
    this.#walks.set(kindKey(kind), walk)
    if (performance.now() - walk.lookedAt < LOOK_EVERY) return []
    walk.lookedAt = performance.now()
    const last = await this.#lastDelivered(kind)
    const { at: now } = await this.#clock.now()
    const hints: string[] = []
    for (let steps = 0; steps < MOST; steps++) {
      const bell = await this.#next(kind, walk.from)
      if (bell === null || bell.seq > last || now - bell.time.getTime() < LEAST_AGE) {
        walk.from = 1
        break
      }
      hints.push(this.#subjects.hintOfBell(bell.subject))
      walk.from = bell.seq + 1
    }
    return hints
  }

  /** The last bell that was handed out; 0: nobody has asked for any. */
  async #lastDelivered(kind: Kind): Promise<number> {
    const { consumers } = this.#connected.jsm
    try {
      return (await consumers.info(this.#subjects.bells, this.#subjects.consumerOf(kind))).delivered.stream_seq
    } catch (error) {
      if (isConsumerNotFound(error)) return 0
      throw error
    }
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
