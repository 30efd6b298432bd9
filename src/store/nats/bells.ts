/**
 * The doorbell: a work queue that hands each due task to one process. A bell that was handed out stays with that process, which
 * says again and again that it has it, and is stopped when the task has ended; if the process dies, another one is handed it.
 */
import type { Connected } from './connection.ts'
import { Kinds } from './kinds.ts'
import { pull } from './pull.ts'
import { type Kind, kindKey, kindOf, type Subjects } from './subjects.ts'

/** A bell in our hands. */
interface Held {
  readonly reply: string
  /** Monotonic: when the server last heard of it from us. */
  heardAt: number
  /** How often a look was offered it in vain, and (monotonic) when it may be again. */
  offers: number
  againAt: number
}

/** A process that has not been heard of for so long is dead: as long as a lease, so that a lapsed one is found in time. */
const ACK_WAIT = 2_000
const SAY_EVERY = 500
/** A kind of work of which there was nothing is not asked for again at once, unless a bell is rung. */
const EMPTY_FOR = 200
/** A bell may be heard before its task is written: that takes moments. */
const FIRST_AGAIN = 5
const LAST_AGAIN = 2_000
const JUST_NOW = 200
const NANOSECONDS = 1_000_000
const HOUR = 3_600_000

export class Bells {
  readonly kinds: Kinds
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #held = new Map<string, Map<string, Held>>()
  readonly #consumers = new Map<string, Promise<string>>()
  /** Monotonic: nothing was there then. */
  readonly #empty = new Map<string, number>()
  /** Monotonic: when we last rang a bell or gave one back, and have asked for none since that we got. */
  readonly #rungAt = new Map<string, number>()
  readonly #saying: NodeJS.Timeout

  constructor(connected: Connected, subjects: Subjects) {
    this.#connected = connected
    this.#subjects = subjects
    this.kinds = new Kinds(connected, subjects, (kind) => this.#empty.delete(kindKey(kind)))
    this.#saying = setInterval(() => this.#sayWhatWeHave(), SAY_EVERY).unref()
  }

  /** `once`: somebody else may be ringing for the same hint at this moment. */
  async ring(hint: string, once = false): Promise<void> {
    const kind = kindOf(hint)
    await this.kinds.add(kind)
    await this.#connected.requests.write(this.#subjects.bell(hint), '', once ? { id: hint } : {})
    this.#rungAt.set(kindKey(kind), performance.now())
    this.kinds.rang(kind)
  }

  /** Up to so many bells of a kind that we did not have, or have again; and whether there may be more. */
  async take(kind: Kind, most: number): Promise<{ readonly hints: readonly string[]; readonly isFull: boolean }> {
    const name = kindKey(kind)
    const now = performance.now()
    if (now - (this.#empty.get(name) ?? Number.NEGATIVE_INFINITY) < EMPTY_FOR) return { hints: [], isFull: false }
    const consumer = await this.#consumerOf(kind)
    const { messages, isGone } = await pull(this.#connected.nc, this.#subjects.bells, consumer, most)
    if (isGone) this.#consumers.delete(name)
    if (messages.length > 0 && (this.#rungAt.get(name) ?? now) < now) this.#rungAt.delete(name)
    const isFull = messages.length === most
    if (!isFull && !isGone && !this.areJustRung([kind])) this.#empty.set(name, now)
    const hints = messages.map((message) => {
      const hint = this.#subjects.hintOfBell(message.subject)
      this.#hold(hint, message.reply!)
      return hint
    })
    return { hints, isFull }
  }

  /** A bell that was rung or given back this moment may not have come to the consumer's ears yet: asking again is worth while. */
  areJustRung(kinds: readonly Kind[]): boolean {
    const now = performance.now()
    return kinds.some((kind) => now - (this.#rungAt.get(kindKey(kind)) ?? Number.NEGATIVE_INFINITY) < JUST_NOW)
  }

  #hold(hint: string, reply: string): void {
    const { queue } = kindOf(hint)
    const held = this.#held.get(queue) ?? new Map<string, Held>()
    this.#held.set(queue, held)
    held.set(hint, { reply, heardAt: performance.now(), offers: 0, againAt: 0 })
  }

  #consumerOf(kind: Kind): Promise<string> {
    const name = kindKey(kind)
    const known = this.#consumers.get(name)
    if (known !== undefined) return known
    const made = this.#makeConsumer(kind)
    this.#consumers.set(name, made)
    made.catch(() => this.#consumers.delete(name))
    return made
  }

  async #makeConsumer(kind: Kind): Promise<string> {
    const name = this.#subjects.consumerOf(kind)
    await this.#connected.jsm.consumers.add(this.#subjects.bells, {
      name,
      durable_name: name,
      filter_subject: this.#subjects.bellsOf(kind),
      ack_policy: 'explicit',
      ack_wait: ACK_WAIT * NANOSECONDS,
      // Never stops because many are at work, never gives up on one.
      max_ack_pending: -1,
      max_deliver: -1,
      inactive_threshold: HOUR * NANOSECONDS,
    })
    return name
  }

  /** Those of a queue that are in our hands. */
  heldIn(queue: string): Iterable<string> {
    return this.#held.get(queue)?.keys() ?? []
  }

  isHeld(hint: string): boolean {
    return this.#held.get(kindOf(hint).queue)?.has(hint) ?? false
  }

  /** Monotonic: when a look may be offered it again, if it is not to be offered now. */
  offer(hint: string): number | null {
    const held = this.#held.get(kindOf(hint).queue)?.get(hint)
    const now = performance.now()
    if (held === undefined || held.againAt > now) return held?.againAt ?? now
    held.againAt = now + Math.min(LAST_AGAIN, FIRST_AGAIN * 2 ** held.offers++)
    return null
  }

  /** Somebody else may have it. */
  giveBack(hint: string): void {
    const held = this.#letGo(hint)
    if (held === undefined) return
    this.#connected.nc.publish(held.reply, '-NAK')
    const name = kindKey(kindOf(hint))
    this.#empty.delete(name)
    this.#rungAt.set(name, performance.now())
  }

  /** The hint is of no use any more. */
  async stop(hint: string): Promise<void> {
    const held = this.#letGo(hint)
    if (held !== undefined) return this.#connected.nc.publish(held.reply, '+ACK')
    await this.#connected.jsm.streams.purge(this.#subjects.bells, { filter: this.#subjects.bell(hint) })
  }

  #letGo(hint: string): Held | undefined {
    const inQueue = this.#held.get(kindOf(hint).queue)
    const held = inQueue?.get(hint)
    inQueue?.delete(hint)
    return held
  }

  #sayWhatWeHave(): void {
    const now = performance.now()
    for (const inQueue of this.#held.values())
      for (const held of inQueue.values()) {
        if (now - held.heardAt < SAY_EVERY) continue
        held.heardAt = now
        this.#connected.nc.publish(held.reply, '+WPI')
      }
  }

  close(): void {
    clearInterval(this.#saying)
    this.#held.clear()
    this.kinds.close()
  }
}
