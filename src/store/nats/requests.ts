/**
 * Questions to the server, and writes that it acknowledges. The client's own way to ask makes a timer, and an error with its stack,
 * for every answer that comes; that was a sixth of what a task cost. Here one timer serves all.
 */
import { randomUUID } from 'node:crypto'
import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/transport-node'

interface Open {
  readonly subject: string
  /** Monotonic. */
  readonly since: number
  readonly done: (answer: Msg) => void
  readonly failed: (error: Error) => void
}

/** Instead of an answer. */
interface Refused {
  readonly error?: { readonly err_code: number; readonly description: string }
}

class Refusal extends Error {
  /** JetStream's own number for what went wrong. */
  readonly code: number

  constructor({ err_code, description }: NonNullable<Refused['error']>) {
    super(description)
    this.code = err_code
  }
}

export interface Condition {
  /** Only if this is the last message of its subject; 0: only if there is none. */
  readonly last?: number
  /** What has the same id as one of the last moments is not written again. */
  readonly id?: string
}

const SWEEP_EVERY = 250
/** Of an answer that says only that nobody listens. */
const NOBODY = 503

export class Requests {
  readonly #nc: NatsConnection
  readonly #newHeaders: () => MsgHdrs
  readonly #deadline: number
  readonly #inbox = `_INBOX.${randomUUID()}`
  /** In the order in which they were asked. */
  readonly #open = new Map<string, Open>()
  readonly #sweeping: NodeJS.Timeout
  #asked = 0

  constructor(nc: NatsConnection, newHeaders: () => MsgHdrs, deadline: number) {
    this.#nc = nc
    this.#newHeaders = newHeaders
    this.#deadline = deadline
    nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#heard(message)
      },
    })
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_EVERY).unref()
    void this.#watch()
  }

  /** The sequence that the message has in its stream. */
  async write(subject: string, data: string | Uint8Array, { last, id }: Condition = {}): Promise<number> {
    const headers = this.#newHeaders()
    if (last !== undefined) headers.set('Nats-Expected-Last-Subject-Sequence', String(last))
    if (id !== undefined) headers.set('Nats-Msg-Id', id)
    return (await this.#ask<{ readonly seq: number }>(subject, data, headers)).seq
  }

  /** The last message of a subject. */
  async last(stream: string, subject: string): Promise<{ readonly text: string; readonly sequence: number }> {
    const query = JSON.stringify({ last_by_subj: subject })
    const { message } = await this.#ask<{ readonly message: { readonly data?: string; readonly seq: number } }>(
      `$JS.API.STREAM.MSG.GET.${stream}`,
      query,
    )
    return { text: Buffer.from(message.data ?? '', 'base64').toString(), sequence: message.seq }
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
    if (answer.headers?.code === NOBODY) throw new Error(`nobody answers to ${subject}: is JetStream enabled?`)
    const told = answer.json<T & Refused>()
    if (told.error !== undefined) throw new Refusal(told.error)
    return told
  }

  #heard(answer: Msg): void {
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

  /** That somebody has no right to a subject is told beside the answers. */
  async #watch(): Promise<void> {
    for await (const status of this.#nc.status()) {
      if (status.type !== 'error' || status.error.name !== 'PermissionViolationError') continue
      const { error } = status
      this.#fail(
        ({ subject }) => subject === (error as Error & { readonly subject?: string }).subject,
        () => error,
      )
    }
    clearInterval(this.#sweeping)
    this.#fail(
      () => true,
      () => new Error('the connection was closed'),
    )
  }
}
