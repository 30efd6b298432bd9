/**
 * What is to happen later: the turn of a task that is not due yet, the expiry of one that is. Kept by minutes, so that a look
 * reads what is due and nothing of what is not, however much that may be.
 */
import type { Msg } from '@nats-io/transport-node'
import type { Instant } from '../../core/task.ts'
import { MINUTE } from '../kv/names.ts'
import type { Connected } from './connection.ts'
import { isNotFound } from './errors.ts'
import { pull } from './pull.ts'
import { hintOf, kindOf, type Subjects } from './subjects.ts'

export type What = 'turn' | 'expiry'

export interface Later {
  readonly hint: string
  readonly what: What
  readonly at: Instant
  readonly sequence: number
}

interface Minute {
  readonly laters: Map<number, Later>
  /** The last message of the stream when this minute was read. */
  readThrough: number
}

interface Queue {
  /** By their first instant. */
  readonly minutes: Map<Instant, Minute>
  /** Those that have anything at all. */
  listed: readonly Instant[]
  lastSequence: number
  /** Monotonic. */
  listedAt: number
}

/** Others add to it, too. */
const LIST_EVERY = 500
const BATCH = 1_000
/** Minutes that one look reads: after a long night the next looks read the rest. */
const MINUTES_AT_ONCE = 16
const NANOSECONDS = 1_000_000
const READER_LIFE = 10_000

export class LaterHints {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #queues = new Map<string, Queue>()
  /** By hint, as far as they have been read. */
  readonly #known = new Map<string, Set<Later>>()

  constructor(connected: Connected, subjects: Subjects) {
    this.#connected = connected
    this.#subjects = subjects
  }

  async put(hint: string, what: What, at: Instant): Promise<void> {
    const { queue } = kindOf(hint)
    await this.#connected.requests.write(this.#subjects.laterAt(queue, at), `${what} ${hint}`)
    this.#queue(queue).listedAt = Number.NEGATIVE_INFINITY
  }

  #queue(name: string): Queue {
    const queue = this.#queues.get(name) ?? {
      minutes: new Map(),
      listed: [],
      lastSequence: 0,
      listedAt: Number.NEGATIVE_INFINITY,
    }
    this.#queues.set(name, queue)
    return queue
  }

  /** Those whose time has come, and the next instant at which looking is worth while. */
  async look(name: string, now: Instant): Promise<{ readonly due: readonly Later[]; readonly next: Instant | null }> {
    const queue = this.#queue(name)
    if (performance.now() - queue.listedAt > LIST_EVERY) await this.#list(name, queue)
    const begun = queue.listed.filter((minute) => minute <= now)
    const unread = begun.filter((minute) => (queue.minutes.get(minute)?.readThrough ?? 0) < queue.lastSequence)
    await Promise.all(unread.slice(0, MINUTES_AT_ONCE).map((minute) => this.#read(name, queue, minute)))
    let next = unread.length > MINUTES_AT_ONCE ? now : Number.POSITIVE_INFINITY
    for (const minute of queue.listed) if (minute > now) next = Math.min(next, minute)
    const due: Later[] = []
    for (const { laters } of queue.minutes.values())
      for (const later of laters.values()) {
        if (later.at <= now) due.push(later)
        else next = Math.min(next, later.at)
      }
    return { due, next: next === Number.POSITIVE_INFINITY ? null : next }
  }

  async #list(name: string, queue: Queue): Promise<void> {
    queue.listedAt = performance.now()
    const options = { subjects_filter: this.#subjects.laterIn(name) }
    const { state } = await this.#connected.jsm.streams.info(this.#subjects.later, options)
    queue.lastSequence = state.last_seq
    queue.listed = Object.keys(state.subjects ?? {}).map((subject) => Number(subject.split('.').at(-1)) * MINUTE)
    const isListed = new Set(queue.listed)
    for (const [instant, minute] of queue.minutes) {
      if (isListed.has(instant)) continue
      for (const later of minute.laters.values()) this.#unknow(later)
      queue.minutes.delete(instant)
    }
  }

  async #read(name: string, queue: Queue, instant: Instant): Promise<void> {
    const minute = queue.minutes.get(instant) ?? { laters: new Map(), readThrough: 0 }
    queue.minutes.set(instant, minute)
    const through = queue.lastSequence
    for await (const later of this.#messages(this.#subjects.laterAt(name, instant), minute.readThrough + 1)) {
      minute.laters.set(later.sequence, later)
      this.#known.set(later.hint, (this.#known.get(later.hint) ?? new Set<Later>()).add(later))
    }
    minute.readThrough = Math.max(minute.readThrough, through)
  }

  async *#messages(filter: string, from: number): AsyncGenerator<Later> {
    const { jsm, nc } = this.#connected
    const { name } = await jsm.consumers.add(this.#subjects.later, {
      filter_subject: filter,
      ack_policy: 'none',
      deliver_policy: 'by_start_sequence',
      opt_start_seq: from,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: READER_LIFE * NANOSECONDS,
    })
    let heard = 0
    for (;;) {
      const { messages } = await pull(nc, this.#subjects.later, name, BATCH)
      for (const message of messages) yield laterOf(message)
      heard += messages.length
      if (messages.length === BATCH) continue
      const { num_pending, delivered } = await jsm.consumers.info(this.#subjects.later, name)
      // A busy server, or we, may have been slower than we were patient: what came too late is asked for once more.
      if (heard < delivered.consumer_seq) yield* this.#messages(filter, from)
      if (heard < delivered.consumer_seq || num_pending === 0) break
    }
    await jsm.consumers.delete(this.#subjects.later, name)
  }

  /** Every hint that waits, in one queue or in all. */
  async all(queue: string | null): Promise<string[]> {
    const filter = queue === null ? this.#subjects.all.later : this.#subjects.laterIn(queue)
    const hints: string[] = []
    for await (const { hint } of this.#messages(filter, 1)) hints.push(hint)
    return hints
  }

  /** It has happened. */
  async remove(later: Later): Promise<void> {
    this.#unknow(later)
    const minute = this.#queue(kindOf(later.hint).queue).minutes.get(Math.floor(later.at / MINUTE) * MINUTE)
    minute?.laters.delete(later.sequence)
    try {
      await this.#connected.jsm.streams.deleteMessage(this.#subjects.later, later.sequence, false)
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }

  /** The hint is of no use any more; what has not been read of it, whoever reads it finds so. */
  async forget(hint: string): Promise<void> {
    await Promise.all([...(this.#known.get(hint) ?? [])].map((later) => this.remove(later)))
  }

  #unknow(later: Later): void {
    const known = this.#known.get(later.hint)
    known?.delete(later)
    if (known?.size === 0) this.#known.delete(later.hint)
  }
}

const laterOf = (message: Msg): Later => {
  const [what, hint] = message.string().split(' ') as [What, string]
  const { at, expiresAt } = hintOf(hint)
  const words = message.reply!.split('.')
  // `$JS.ACK.stream.consumer.deliveries.sequence.…`; newer servers have two more words before the stream.
  const sequence = Number(words[words.length === 9 ? 5 : 7])
  return { hint, what, at: what === 'expiry' ? expiresAt! : at, sequence }
}

/** Sequence not found; the message could not be deleted, because there is none. */
const GONE: readonly number[] = [10_043, 10_057]

/** Another process removed it: the server finds no message of this sequence, and says so in one of three ways. */
const isGone = (error: unknown): boolean => isNotFound(error) || GONE.includes((error as { code?: number }).code ?? 0)
