/**
 * Ready messages: a work queue that delivers each due task to one process. That process keeps the message, reports progress
 * on it, and acknowledges it when the task has ended. If the process dies, the server delivers the message to another one. A
 * message only says where to look: the task's record decides.
 */
import type { Msg } from '@nats-io/transport-node'
import { isContactLost } from '../../../core/errors.ts'
import type { Connected } from '../connection/connection.ts'
import { asHoldfastError } from '../connection/errors.ts'
import { ALL_TYPES, type Subjects, type WorkType, workTypeKey, workTypeOf } from '../subjects.ts'
import type { Announcements } from './announcements.ts'
import { pull } from './pull.ts'
import { ReadyConsumers } from './ready-consumers.ts'
import { WaitingPulls } from './waiting-pulls.ts'
import { WorkTypes } from './work-types.ts'

/** A message that this process holds. */
interface Held {
  /** The work type of the consumer that delivered it. */
  readonly type: WorkType
  readonly reply: string
  /** Monotonic: the last progress report to the server. */
  reportedAt: number
  /** How often it was offered to a claim in vain, and (monotonic) when it may be offered again. */
  offers: number
  againAt: number
}

const REPORT_EVERY = 500
/** If no worker of this process has surveyed the queue for this long, its messages are left to other processes. */
const ABANDON_AFTER = 10_000
/** A message that arrives unrequested is returned unless a survey takes it within this time. */
const RETURN_AFTER = 250
/** A message may arrive a moment before its task is written. */
const FIRST_OFFER_DELAY = 5
const LONGEST_OFFER_DELAY = 2_000
/** The first delay before asking again for a message that was just announced. It doubles each time. */
const FIRST_WAIT = 2
const JUST_NOW = 200
/** How long a survey waits for a message that was just announced, when a waiting pull will deliver it. */
const ARRIVAL = 16

export interface Taken {
  readonly hints: readonly string[]
  /** There may be more. */
  readonly isFull: boolean
}

const NOTHING: Taken = { hints: [], isFull: false }

export class ReadyMessages {
  readonly types: WorkTypes
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #announcements: Announcements
  readonly #waiting: WaitingPulls
  readonly #held = new Map<string, Map<string, Held>>()
  /** Messages that no survey has seen yet. */
  readonly #unseen = new Set<string>()
  readonly #consumers: ReadyConsumers
  /** Monotonic: the last time this process announced or returned a message. */
  readonly #announcedAt = new Map<string, number>()
  /** Monotonic, by queue. */
  readonly #surveyedAt = new Map<string, number>()
  readonly #progressTimer: NodeJS.Timeout

  constructor(connected: Connected, subjects: Subjects, announcements: Announcements) {
    this.#connected = connected
    this.#subjects = subjects
    this.#announcements = announcements
    this.types = new WorkTypes(connected, subjects, announcements)
    this.#consumers = new ReadyConsumers(connected, subjects)
    this.#waiting = new WaitingPulls(connected.nc, subjects, {
      arrived: (type, message) => this.#arrived(type, message),
      gone: (type) => this.#consumers.forget(type),
    })
    // The server has dropped the waiting pulls, and announcements may have been missed.
    connected.onReconnect(() => {
      this.#waiting.cancel()
      announcements.wake([...this.#surveyedAt.keys()])
    })
    this.#progressTimer = setInterval(() => this.#reportProgress(), REPORT_EVERY).unref()
  }

  /** `once`: another process may announce the same hint at this moment. */
  async announce(hint: string, once = false): Promise<void> {
    const type = this.types.groupOf(workTypeOf(hint))
    await this.types.add(type)
    await this.#connected.requests.write(this.#subjects.message(hint, type), '', once ? { id: hint } : {})
    this.#announcedAt.set(workTypeKey(type), performance.now())
  }

  surveyed(queue: string): void {
    this.#surveyedAt.set(queue, performance.now())
  }

  /** At most `most` messages that this process did not hold, or got again. */
  async take(type: WorkType, most: number): Promise<Taken> {
    const begun = performance.now()
    for (let wait = FIRST_WAIT; ; wait *= 2) {
      const isWaiting = this.#waiting.has(type)
      const taken = this.#arrivedOf(type) ?? (isWaiting ? NOTHING : await this.#pull(type, most))
      const patience = isWaiting ? ARRIVAL : JUST_NOW
      // A waiting pull has been placed meanwhile, and will deliver what comes.
      if (taken.hints.length > 0 || (!isWaiting && this.#waiting.has(type))) return taken
      if (!this.#wasJustAnnounced(type) || performance.now() - begun + wait > patience) return taken
      await new Promise((later) => setTimeout(later, wait))
    }
  }

  /** What a waiting pull has delivered, if anything. */
  #arrivedOf(type: WorkType): Taken | null {
    const key = workTypeKey(type)
    const isOf = (hint: string): boolean => {
      const held = this.#held.get(type.queue)?.get(hint)
      return held !== undefined && workTypeKey(held.type) === key
    }
    const hints = [...this.#unseen].filter(isOf)
    for (const hint of hints) this.#unseen.delete(hint)
    return hints.length === 0 ? null : { hints, isFull: true }
  }

  async #pull(type: WorkType, most: number): Promise<Taken> {
    const key = workTypeKey(type)
    const begun = performance.now()
    const consumer = await this.#consumers.nameOf(type)
    const { messages, isGone } = await pull(this.#connected, this.#subjects.ready, consumer, most)
    if (isGone) this.#consumers.forget(type)
    if (messages.length > 0 && (this.#announcedAt.get(key) ?? begun) < begun) this.#announcedAt.delete(key)
    const isFull = messages.length === most
    if (!isFull && !isGone && this.#announcements.hasListeners) this.#waiting.place(type, consumer)
    return { hints: messages.map((message) => this.#hold(type, message)), isFull }
  }

  /** A message that was just announced or returned may not have reached the consumer yet. */
  #wasJustAnnounced(type: WorkType): boolean {
    return performance.now() - (this.#announcedAt.get(workTypeKey(type)) ?? Number.NEGATIVE_INFINITY) < JUST_NOW
  }

  #hold(type: WorkType, message: Msg): string {
    const hint = this.#subjects.hintOfMessage(message.subject)
    const held = this.#held.get(type.queue) ?? new Map<string, Held>()
    this.#held.set(type.queue, held)
    held.set(hint, { type, reply: message.reply!, reportedAt: performance.now(), offers: 0, againAt: 0 })
    return hint
  }

  #arrived(type: WorkType, message: Msg): void {
    const hint = this.#hold(type, message)
    this.#unseen.add(hint)
    this.#announcements.wakeSoon(type.queue)
    setTimeout(() => {
      if (this.#unseen.has(hint)) this.giveBack(hint)
    }, RETURN_AFTER).unref()
  }

  heldIn(queue: string): Iterable<string> {
    return this.#held.get(queue)?.keys() ?? []
  }

  isHeld(hint: string): boolean {
    return this.#held.get(workTypeOf(hint).queue)?.has(hint) ?? false
  }

  /** True for the first survey that sees the message. */
  seen(hint: string): boolean {
    return this.#unseen.delete(hint)
  }

  /** null: offer it now. Else monotonic: when to offer it again. */
  offer(hint: string): number | null {
    const held = this.#held.get(workTypeOf(hint).queue)?.get(hint)
    const now = performance.now()
    if (held === undefined || held.againAt > now) return held?.againAt ?? now
    held.againAt = now + Math.min(LONGEST_OFFER_DELAY, FIRST_OFFER_DELAY * 2 ** held.offers++)
    return null
  }

  /** The server delivers it to another process. */
  giveBack(hint: string): void {
    const held = this.#drop(hint)
    if (held === undefined) return
    this.#connected.nc.publish(held.reply, '-NAK')
    this.#announcedAt.set(workTypeKey(held.type), performance.now())
  }

  /** This worker does not handle the type. Its messages get a consumer of their own, so that they do not hold up others. */
  async separate(hint: string): Promise<void> {
    const held = this.#held.get(workTypeOf(hint).queue)?.get(hint)
    if (held?.type.type !== ALL_TYPES) return this.giveBack(hint)
    const type = workTypeOf(hint)
    this.seen(hint)
    try {
      await this.types.separate(type)
      await this.#connected.requests.write(this.#subjects.message(hint, type), '')
    } catch (error) {
      this.giveBack(hint)
      if (isContactLost(asHoldfastError(error, ''))) throw error
      return
    }
    this.#announcedAt.set(workTypeKey(type), performance.now())
    this.#drop(hint)
    this.#connected.nc.publish(held.reply, '+ACK')
  }

  async withdraw(hint: string): Promise<void> {
    const held = this.#drop(hint)
    if (held !== undefined) return this.#connected.nc.publish(held.reply, '+ACK')
    await this.#connected.jsm.streams.purge(this.#subjects.ready, { filter: this.#subjects.anyMessage(hint) })
  }

  #drop(hint: string): Held | undefined {
    const inQueue = this.#held.get(workTypeOf(hint).queue)
    const held = inQueue?.get(hint)
    inQueue?.delete(hint)
    this.#unseen.delete(hint)
    return held
  }

  #reportProgress(): void {
    const now = performance.now()
    for (const [queue, inQueue] of this.#held) {
      // The process that gets the messages then watches their leases.
      if (now - (this.#surveyedAt.get(queue) ?? 0) > ABANDON_AFTER) inQueue.clear()
      for (const held of inQueue.values()) {
        if (now - held.reportedAt < REPORT_EVERY) continue
        held.reportedAt = now
        this.#connected.nc.publish(held.reply, '+WPI')
      }
    }
  }

  /** Called when other processes announce work. Queues are named as in keys, escaped. */
  listen(listener: (queues: readonly string[]) => void): () => void {
    const stop = this.#announcements.listen(listener)
    return () => {
      stop()
      if (!this.#announcements.hasListeners) this.#waiting.cancel()
    }
  }

  close(): void {
    clearInterval(this.#progressTimer)
    this.#waiting.cancel()
    for (const inQueue of this.#held.values()) for (const hint of [...inQueue.keys()]) this.giveBack(hint)
    this.#announcements.close()
  }
}
