/**
 * Requests and acknowledged writes. The client creates a timer and an error with a stack for every request, which was a sixth
 * of the cost of a task. Here one timer serves all requests.
 */
import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import { apiSubject, newInbox, writeSubject } from './prefixes.ts'

interface Open {
  readonly subject: string
  /** Monotonic. */
  readonly since: number
  readonly done: (answer: Msg) => void
  readonly failed: (error: Error) => void
}

/** An error reply. */
interface Refused {
  readonly error?: { readonly code: number; readonly err_code: number; readonly description: string }
}

class Refusal extends Error {
  /** JetStream's error number. */
  readonly code: number
  /** An HTTP status. */
  readonly status: number

  constructor({ code, err_code, description }: NonNullable<Refused['error']>) {
    super(description)
    this.code = err_code
    this.status = code
  }
}

export interface Condition {
  /** Write only if this is the last sequence of the subject. 0: only if the subject has no message. */
  readonly last?: number
  /** The server drops a message with the same id as a recent one. */
  readonly id?: string
}

const SWEEP_EVERY = 250
/** The status of a reply that means that the subject has no responder. */
const NO_RESPONDERS = 503

export class Requests {
  readonly #nc: NatsConnection
  readonly #newHeaders: () => MsgHdrs
  readonly #deadline: number
  readonly #inbox: string
  /** In the order in which they were sent. */
  readonly #open = new Map<string, Open>()
  readonly #sweeping: NodeJS.Timeout
  /** By the subject of a message that is answered elsewhere. */
  readonly #refusals = new Map<string, Set<(error: Error) => void>>()
  #asked = 0

  constructor(nc: NatsConnection, newHeaders: () => MsgHdrs, deadline: number) {
    this.#nc = nc
    this.#newHeaders = newHeaders
    this.#deadline = deadline
    this.#inbox = newInbox(nc)
    nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#receive(message)
      },
    })
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_EVERY).unref()
    void this.#watch()
  }

  /** Returns the sequence of the message in its stream. */
  async write(subject: string, data: string | Uint8Array, { last, id }: Condition = {}): Promise<number> {
    const headers = this.#newHeaders()
    if (last !== undefined) headers.set('Nats-Expected-Last-Subject-Sequence', String(last))
    if (id !== undefined) headers.set('Nats-Msg-Id', id)
    return (await this.#ask<{ readonly seq: number }>(writeSubject(this.#nc, subject), data, headers)).seq
  }

  async last(stream: string, subject: string): Promise<{ readonly text: string; readonly sequence: number }> {
    const query = JSON.stringify({ last_by_subj: subject })
    const { message } = await this.#ask<{ readonly message: { readonly data?: string; readonly seq: number } }>(
      apiSubject(this.#nc, `STREAM.MSG.GET.${stream}`),
      query,
    )
    return { text: Buffer.from(message.data ?? '', 'base64').toString(), sequence: message.seq }
  }

  /** Calls the listener when this user may not publish to the subject: then no reply comes. Returns a function that removes it. */
  onRefusal(subject: string, listener: (error: Error) => void): () => void {
    const listeners = this.#refusals.get(subject) ?? new Set()
    this.#refusals.set(subject, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#refusals.get(subject) === listeners) this.#refusals.delete(subject)
    }
  }

  async #ask<T>(subject: string, data: string | Uint8Array, headers?: MsgHdrs): Promise<T> {
    const answer = await new Promise<Msg>((done, failed) => {
      const token = (++this.#asked).toString(36)
      this.#nc.publish(subject, data, {
        reply: `${this.#inbox}.${token}`,
        ...(headers === undefined ? null : { headers }),
      })
      this.#open.set(token, { subject, since: performance.now(), done, failed })
    })
    if (answer.headers?.code === NO_RESPONDERS) throw new Error(`no responder on ${subject}: is JetStream enabled?`)
    const reply = answer.json<T & Refused>()
    if (reply.error !== undefined) throw new Refusal(reply.error)
    return reply
  }

  #receive(answer: Msg): void {
    const token = answer.subject.slice(this.#inbox.length + 1)
    this.#open.get(token)?.done(answer)
    this.#open.delete(token)
  }

  #sweep(): void {
    const late = performance.now() - this.#deadline
    this.#fail(
      ({ since }) => since < late,
      (subject) => new Error(`no answer to ${subject} within ${this.#deadline} ms`),
    )
  }

  #fail(which: (open: Open) => boolean, why: (subject: string) => Error): void {
    for (const [token, open] of this.#open) {
      if (!which(open)) continue
      this.#open.delete(token)
      open.failed(why(open.subject))
    }
  }

  /** Permission violations arrive as connection events, not as replies. */
  async #watch(): Promise<void> {
    for await (const status of this.#nc.status()) {
      if (status.type !== 'error' || status.error.name !== 'PermissionViolationError') continue
      const { error } = status
      const { subject: refused = '' } = error as Error & { readonly subject?: string }
      this.#fail(
        ({ subject }) => subject === refused,
        () => error,
      )
      for (const listener of [...(this.#refusals.get(refused) ?? [])]) listener(error)
    }
    clearInterval(this.#sweeping)
    this.#fail(
      () => true,
      () => new Error('the connection was closed'),
    )
  }
}
