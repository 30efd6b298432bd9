/**
 * Hints for later: a task that is not due yet, or a task that will expire. They are stored by the minute, so that a survey
 * reads only what is due, no matter how many hints wait.
 */
import type { Msg } from '@nats-io/transport-node'
import type { Instant } from '../../../core/task.ts'
import { groupOfHint } from '../../kv/records/hint-names.ts'
import { MINUTE } from '../../kv/records/names.ts'
import type { ServerClock } from '../clock.ts'
import type { Connected } from '../connection/connection.ts'
import { isNotFound } from '../connection/errors.ts'
import { hintOf, type Subjects, workTypeOf } from '../subjects.ts'
import type { Announcements } from './announcements.ts'
import type { GroupedHints } from './grouped-hints.ts'
import { pull } from './pull.ts'

export type LaterKind = 'due' | 'expiry'

export interface Later {
  readonly hint: string
  readonly kind: LaterKind
  readonly at: Instant
  readonly sequence: number
}

interface Minute {
  readonly laters: Map<number, Later>
  /** The last sequence of the stream when this minute was read. */
  readThrough: number
}

interface Queue {
  /** By the first instant of each minute. */
  readonly minutes: Map<Instant, Minute>
  /** Minutes that have hints, each with the sequence up to which it must be read. */
  listed: Map<Instant, number>
  /** Monotonic. */
  listedAt: number
  surveyedAt: number
  /** Another process has added a hint for the near future. */
  isStale: boolean
}

/** Hints that other processes announce are listed at most this often. */
const LIST_EVERY = 500
/** Finds hints whose announcement was lost, and hints for later that are not announced. */
const LIST_ALL_EVERY = 10_000
/** A hint for after this time is found by the next list of all queues. */
const SOON = 2 * LIST_ALL_EVERY
/** Only a process that surveyed the queue within this time remembers the hints that it adds. */
const REMEMBER_FOR = 10_000
const BATCH = 1_000
/** Minutes that one survey reads. After a long downtime the next surveys read the rest. */
const MOST_MINUTES = 16
const NANOSECONDS = 1_000_000
const READER_LIFE = 10_000

export class LaterHints {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #announcements: Announcements
  readonly #clock: ServerClock
  readonly #grouped: GroupedHints
  readonly #queues = new Map<string, Queue>()
  /** By hint, as far as they have been read. */
  readonly #known = new Map<string, Set<Later>>()
  #listedAllAt = Number.NEGATIVE_INFINITY
  #listing: Promise<void> | null = null

  constructor(
    connected: Connected,
    subjects: Subjects,
    announcements: Announcements,
    clock: ServerClock,
    grouped: GroupedHints,
  ) {
    this.#grouped = grouped
    this.#connected = connected
    this.#subjects = subjects
    this.#announcements = announcements
    this.#clock = clock
    announcements.on('later', (queue) => {
      this.#queue(queue).isStale = true
    })
    // Announcements may have been missed.
    connected.onReconnect(() => {
      this.#listedAllAt = Number.NEGATIVE_INFINITY
    })
  }

  async put(hint: string, kind: LaterKind, at: Instant): Promise<void> {
    const { queue: name } = workTypeOf(hint)
    const sequence = await this.#connected.requests.write(this.#subjects.laterAt(name, at), `${kind} ${hint}`)
    const queue = this.#queue(name)
    const isSoon = at - this.#clock.hintTime < SOON
    if (isSoon) this.#announcements.send('later', name)
    if (isSoon && performance.now() - queue.surveyedAt < REMEMBER_FOR)
      this.#remember(queue, { hint, kind, at, sequence })
    else queue.listed.set(minuteAt(at), sequence)
  }

  #remember(queue: Queue, later: Later): void {
    const minute = this.#minute(queue, minuteAt(later.at))
    minute.laters.set(later.sequence, later)
    this.#known.set(later.hint, (this.#known.get(later.hint) ?? new Set<Later>()).add(later))
  }

  #minute(queue: Queue, instant: Instant): Minute {
    const minute = queue.minutes.get(instant) ?? { laters: new Map(), readThrough: 0 }
    queue.minutes.set(instant, minute)
    return minute
  }

  #queue(name: string): Queue {
    const queue = this.#queues.get(name) ?? {
      minutes: new Map(),
      listed: new Map(),
      listedAt: Number.NEGATIVE_INFINITY,
      surveyedAt: Number.NEGATIVE_INFINITY,
      isStale: true,
    }
    this.#queues.set(name, queue)
    return queue
  }

  /**
   * The hints whose time has come, and the next instant at which a survey is worth while. What is known is returned although
   * a read fails, if `part` handles its error.
   */
  async due(
    name: string,
    now: Instant,
    part: (read: () => Promise<void>) => Promise<void>,
  ): Promise<{ readonly due: readonly Later[]; readonly next: Instant | null }> {
    const queue = this.#queue(name)
    queue.surveyedAt = performance.now()
    await part(() => this.#refresh(name, queue))
    const unread = [...queue.listed].filter(
      ([minute, through]) => minute <= now && (queue.minutes.get(minute)?.readThrough ?? 0) < through,
    )
    await Promise.all(unread.slice(0, MOST_MINUTES).map((one) => part(() => this.#read(name, queue, ...one))))
    let next = unread.length > MOST_MINUTES ? now : Number.POSITIVE_INFINITY
    if (queue.isStale) next = Math.min(next, now + LIST_EVERY)
    for (const minute of queue.listed.keys()) if (minute > now) next = Math.min(next, minute)
    const due: Later[] = []
    for (const { laters } of queue.minutes.values())
      for (const later of laters.values()) {
        if (later.at <= now) due.push(later)
        else next = Math.min(next, later.at)
      }
    return { due, next: next === Number.POSITIVE_INFINITY ? null : next }
  }

  /** Now and then one list for all queues, and one for a queue that other processes have added to. */
  async #refresh(name: string, queue: Queue): Promise<void> {
    const now = performance.now()
    if (now - this.#listedAllAt > LIST_ALL_EVERY) {
      this.#listing ??= this.#listAll().finally(() => {
        this.#listing = null
      })
      return this.#listing
    }
    if (queue.isStale && now - queue.listedAt > LIST_EVERY) await this.#list([name], this.#subjects.laterIn(name))
  }

  async #listAll(): Promise<void> {
    const begun = performance.now()
    await this.#list(null, this.#subjects.all.later)
    this.#listedAllAt = begun
  }

  /** `names`: the queues that the filter covers; null: all queues. */
  async #list(names: readonly string[] | null, filter: string): Promise<void> {
    const covered = names ?? [...this.#queues.keys()]
    for (const name of covered) Object.assign(this.#queue(name), { listedAt: performance.now(), isStale: false })
    const { state } = await this.#connected.jsm.streams
      .info(this.#subjects.later, { subjects_filter: filter })
      .catch((error: unknown) => {
        for (const name of covered) this.#queue(name).isStale = true
        throw error
      })
    const listed = new Map(covered.map((name) => [name, new Map<Instant, number>()]))
    // A list of all queues also shows the lines of groups.
    if (names === null) this.#grouped.listed(state.subjects ?? {})
    for (const subject of Object.keys(state.subjects ?? {})) {
      if (this.#subjects.parseGrouped(subject) !== null) continue
      const minute = Number(subject.split('.').at(-1)) * MINUTE
      listed.get(this.#subjects.queueOfLater(subject))?.set(minute, state.last_seq)
    }
    for (const [name, minutes] of listed) this.#listed(this.#queue(name), minutes, state.last_seq)
  }

  #listed(queue: Queue, listed: Map<Instant, number>, lastSequence: number): void {
    for (const [minute, through] of queue.listed) if (through > lastSequence) listed.set(minute, through)
    queue.listed = listed
    for (const [instant, minute] of queue.minutes) {
      if (listed.has(instant)) continue
      for (const later of minute.laters.values()) {
        // Added after the list.
        if (later.sequence > lastSequence) continue
        this.#forget(later)
        minute.laters.delete(later.sequence)
      }
      if (minute.laters.size === 0) queue.minutes.delete(instant)
    }
  }

  async #read(name: string, queue: Queue, instant: Instant, through: number): Promise<void> {
    const from = (queue.minutes.get(instant)?.readThrough ?? 0) + 1
    for await (const message of this.#messages(this.#subjects.laterAt(name, instant), from))
      this.#remember(queue, laterOf(message))
    const minute = this.#minute(queue, instant)
    minute.readThrough = Math.max(minute.readThrough, through)
  }

  async *#messages(filter: string, from: number): AsyncGenerator<Msg> {
    const { jsm } = this.#connected
    const { name } = await jsm.consumers.add(this.#subjects.later, {
      filter_subject: filter,
      ack_policy: 'none',
      deliver_policy: 'by_start_sequence',
      opt_start_seq: from,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: READER_LIFE * NANOSECONDS,
    })
    let received = 0
    for (;;) {
      const { messages } = await pull(this.#connected, this.#subjects.later, name, BATCH)
      yield* messages
      received += messages.length
      if (messages.length === BATCH) continue
      const reader = await unlessGone(jsm.consumers.info(this.#subjects.later, name))
      // The server, or this process, was too slow for the timeout of a pull, or the reader is gone. Read again what arrived too late.
      const isShort = reader === null || received < reader.delivered.consumer_seq
      if (isShort) yield* this.#messages(filter, from)
      if (isShort || reader.num_pending === 0) break
    }
    await unlessGone(jsm.consumers.delete(this.#subjects.later, name))
  }

  /** Every hint that waits in one queue. null: in all queues. */
  async all(queue: string | null): Promise<string[]> {
    const filter = queue === null ? this.#subjects.all.later : this.#subjects.laterIn(queue)
    const hints: string[] = []
    for await (const message of this.#messages(filter, 1)) hints.push(hintIn(message))
    if (queue !== null)
      for await (const message of this.#messages(this.#subjects.groupedIn(queue), 1)) hints.push(hintIn(message))
    return hints
  }

  /** Its time has come, or it was withdrawn. */
  async remove(later: Later): Promise<void> {
    this.#forget(later)
    const minute = this.#queue(workTypeOf(later.hint).queue).minutes.get(minuteAt(later.at))
    minute?.laters.delete(later.sequence)
    await this.#delete(later.sequence)
  }

  async #delete(sequence: number): Promise<void> {
    await unlessGone(this.#connected.jsm.streams.deleteMessage(this.#subjects.later, sequence, false))
  }

  /** Removes what this process has read of the hint. Another process that reads the rest finds it obsolete. */
  async forget(hint: string): Promise<void> {
    const grouped = groupOfHint(hint) === null ? null : this.#grouped.forget(hint)
    const laters = [...(this.#known.get(hint) ?? [])].map((later) => this.remove(later))
    await Promise.all(grouped === null ? laters : [...laters, this.#delete(grouped)])
  }

  #forget(later: Later): void {
    const known = this.#known.get(later.hint)
    known?.delete(later)
    if (known?.size === 0) this.#known.delete(later.hint)
  }
}

const minuteAt = (at: Instant): Instant => Math.floor(Math.max(0, at) / MINUTE) * MINUTE

/** `{kind} {hint}` by the minute, only the hint in a group. */
const hintIn = (message: Msg): string => message.string().split(' ').at(-1)!

const laterOf = (message: Msg): Later => {
  const [kind, hint] = message.string().split(' ') as [LaterKind, string]
  const { availableAt, expiresAt } = hintOf(hint)
  const words = message.reply!.split('.')
  // `$JS.ACK.stream.consumer.deliveries.sequence.…`. Newer servers have two more words before the stream.
  const sequence = Number(words[words.length === 9 ? 5 : 7])
  return { hint, kind, at: kind === 'expiry' ? expiresAt! : availableAt, sequence }
}

/** Consumer not found, sequence not found, and message not deleted because it does not exist. */
const GONE: readonly number[] = [10_014, 10_043, 10_057]

/** null: it is gone. Another process removed the message, or the consumer was unused for too long. */
const unlessGone = async <T>(call: Promise<T>): Promise<T | null> => {
  try {
    return await call
  } catch (error) {
    if (!isGone(error)) throw error
    return null
  }
}

const isGone = (error: unknown): boolean => isNotFound(error) || GONE.includes((error as { code?: number }).code ?? 0)
