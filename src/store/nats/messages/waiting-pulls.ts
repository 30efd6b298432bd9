/** Pull requests that wait at the server for one message each, so that an idle worker need not poll. */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node'
import { apiSubject, newInbox } from '../connection/prefixes.ts'
import { type Subjects, type WorkType, workTypeKey } from '../subjects.ts'

/** How long the server keeps a request. */
const EXPIRES = 30_000
/** With many requests each is kept longer, by this much for every request, so that the renewals do not become more frequent. */
const APART = 2_000
/** The server reports an expired request. Without a report for this long after expiry, the request was lost. */
const GRACE = 5_000
const NANOSECONDS = 1_000_000
/** The status of an expired request. */
const EXPIRED = 408

interface Waiting {
  readonly type: WorkType
  readonly consumer: string
  readonly token: string
  /** Monotonic: after this no reply will come. */
  readonly lostAt: number
}

export interface WaitingPullsHost {
  arrived(type: WorkType, message: Msg): void
  /** The consumer, or the server that led it, is gone. */
  gone(type: WorkType): void
}

export class WaitingPulls {
  readonly #nc: NatsConnection
  readonly #subjects: Subjects
  readonly #host: WaitingPullsHost
  /** By work type. */
  readonly #waiting = new Map<string, Waiting>()
  #inbox = ''
  #subscription: Subscription | null = null
  #placed = 0

  constructor(nc: NatsConnection, subjects: Subjects, host: WaitingPullsHost) {
    this.#nc = nc
    this.#subjects = subjects
    this.#host = host
  }

  has(type: WorkType): boolean {
    const key = workTypeKey(type)
    const waiting = this.#waiting.get(key)
    if (waiting === undefined) return false
    if (performance.now() < waiting.lostAt) return true
    this.#waiting.delete(key)
    return false
  }

  place(type: WorkType, consumer: string): void {
    if (this.has(type)) return
    this.#subscribe()
    const token = (++this.#placed).toString(36)
    const expires = Math.max(EXPIRES, (this.#waiting.size + 1) * APART)
    const lostAt = performance.now() + expires + GRACE
    this.#waiting.set(workTypeKey(type), { type, consumer, token, lostAt })
    const request = JSON.stringify({ batch: 1, expires: expires * NANOSECONDS })
    this.#nc.publish(apiSubject(this.#nc, `CONSUMER.MSG.NEXT.${this.#subjects.ready}.${consumer}`), request, {
      reply: `${this.#inbox}.${token}`,
    })
  }

  #subscribe(): void {
    if (this.#subscription !== null) return
    this.#inbox = newInbox(this.#nc)
    this.#subscription = this.#nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#receive(message)
      },
    })
  }

  #receive(message: Msg): void {
    // A reply on the inbox itself is not a message: it reports how the request ended.
    if (message.subject.startsWith(`${this.#inbox}.`)) this.#ended(message)
    else {
      const type = this.#subjects.workTypeOfMessage(message.subject)
      this.#waiting.delete(workTypeKey(type))
      this.#host.arrived(type, message)
    }
  }

  #ended(message: Msg): void {
    const token = message.subject.slice(this.#inbox.length + 1)
    const ended = [...this.#waiting.values()].find((waiting) => waiting.token === token)
    if (ended === undefined) return
    this.#waiting.delete(workTypeKey(ended.type))
    if (message.headers?.code === EXPIRED) this.place(ended.type, ended.consumer)
    else this.#host.gone(ended.type)
  }

  /** The server drops requests whose inbox has no subscriber. */
  cancel(): void {
    this.#waiting.clear()
    this.#subscription?.unsubscribe()
    this.#subscription = null
  }
}
