/** Removes what a caller may not see: lease tokens, payloads without the right, and redacted keys. */
import { createHmac, randomBytes } from 'node:crypto'
import {
  type DeadGroup,
  type HistoryEntry,
  HoldfastError,
  type Instant,
  isMove,
  type Schedule,
  type Task,
  type TaskChange,
} from '../../index.ts'

const REDACTED = '[redacted]'

type Json = Record<string, unknown>

/** Compiles key patterns (`*` matches anything) into one case-insensitive test. */
export const redactor = (patterns: readonly string[]): ((key: string) => boolean) => {
  const exact = new Set<string>()
  const parts: (readonly string[])[] = []
  for (const pattern of patterns.map((one) => one.toLowerCase())) {
    if (pattern.includes('*')) parts.push(pattern.split('*'))
    else exact.add(pattern)
  }
  return (key) => {
    const name = key.toLowerCase()
    return exact.has(name) || parts.some((pieces) => fits(name, pieces))
  }
}

/** Matches piece by piece without a regular expression: linear for any key. */
const fits = (name: string, pieces: readonly string[]): boolean => {
  const [first = '', last = ''] = [pieces[0], pieces.at(-1)]
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
  let from = first.length
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, from)
    if (found === -1 || found + piece.length > name.length - last.length) return false
    from = found + piece.length
  }
  return true
}

/** The most fingerprints that are remembered for callers without the right to payloads. */
const MOST_SHOWN = 10_000
const NO_FINGERPRINT = 'none'

export class Redaction {
  readonly #key = randomBytes(32)
  /** By the form in which it was shown. */
  readonly #fingerprints = new Map<string, string>()
  readonly #payloads: boolean
  readonly #isSecret: ((key: string) => boolean) | null
  readonly #now: () => Promise<Instant>

  constructor(options: {
    readonly payloads: boolean
    readonly isSecret: ((key: string) => boolean) | null
    readonly now: () => Promise<Instant>
  }) {
    this.#payloads = options.payloads
    this.#isSecret = options.isSecret
    this.#now = options.now
  }

  /** The store's time, precise enough to compute a view. */
  now(): Promise<Instant> {
    return this.#now()
  }

  async task(task: Task): Promise<Json> {
    return this.#task(task, await this.#now())
  }

  async tasks(tasks: readonly Task[]): Promise<Json[]> {
    const now = await this.#now()
    return tasks.map((task) => this.#task(task, now))
  }

  /** For lists: without payloads, and with no more of an error than a row shows. */
  async summaries(tasks: readonly Task[]): Promise<Json[]> {
    const now = await this.#now()
    return tasks.map((task) => {
      const { lastError, ...summary } = this.#task(task, now, task.summary())
      return { ...summary, lastError: shortError(lastError as Json | null), payloads: 'omitted' }
    })
  }

  /** Throws if the value of this tag is hidden: a filter would reveal it by guesses. */
  checkFilter(tag: string): void {
    if (this.#isSecret?.(tag))
      throw new HoldfastError('INVALID_OPTION', `the tag '${tag}' is redacted here, so it cannot be a filter`, {
        field: 'tag',
      })
  }

  /**
   * Anybody can compute the fingerprint of an error that they guess. Where messages are withheld, fingerprints are therefore shown under names
   * that only this server knows.
   */
  #fingerprint(fingerprint: string): string {
    if (this.#payloads) return fingerprint
    const shown = createHmac('sha256', this.#key).update(fingerprint).digest('hex').slice(0, 16)
    this.#fingerprints.delete(shown)
    this.#fingerprints.set(shown, fingerprint)
    const [oldest] = this.#fingerprints.keys()
    if (this.#fingerprints.size > MOST_SHOWN) this.#fingerprints.delete(oldest!)
    return shown
  }

  /** The fingerprint behind the one that was shown to the caller. One that was not matches nothing. */
  fingerprintOf(shown: string): string {
    return this.#payloads ? shown : (this.#fingerprints.get(shown) ?? NO_FINGERPRINT)
  }

  /** For the worker that claimed it: everything, unredacted. */
  async claimed(task: Task): Promise<Json> {
    return { ...withoutTokens(task.toJSON()), view: task.viewAt(await this.#now()), payloads: 'shown' }
  }

  async group({ sample, ...group }: DeadGroup): Promise<Json> {
    return {
      ...group,
      fingerprint: this.#fingerprint(group.fingerprint),
      pattern: this.#payloads ? group.pattern : '',
      firstSeenAt: new Date(group.firstSeenAt).toISOString(),
      lastSeenAt: new Date(group.lastSeenAt).toISOString(),
      sample: (await this.summaries([sample]))[0],
    }
  }

  timeline(task: Task): Json[] {
    return task.timeline().map((one) => {
      if (isMove(one)) return this.#entry(one)
      const { at, until, error, ...facts } = one
      return {
        ...facts,
        at: new Date(at).toISOString(),
        ...(until === undefined ? null : { until: until === null ? null : new Date(until).toISOString() }),
        ...(this.#payloads && error !== undefined ? { error } : null),
      }
    })
  }

  schedule(schedule: Schedule): Json {
    const { input, options, ...rest } = schedule.toJSON()
    return { ...rest, options: this.#hidden(options), input: this.#payload(input), payloads: this.#how }
  }

  change({ entry, task }: TaskChange): Json {
    return { id: task.id, type: task.type, queue: task.queue, ...this.#entry(entry) }
  }

  #entry({ op: _, at, availableAt, expiresAt, expiredAt, error, reason, ...facts }: HistoryEntry): Json {
    return {
      ...facts,
      ...instants({ at, availableAt, expiresAt, expiredAt }),
      ...(this.#payloads && error !== undefined ? { error } : null),
      ...(this.#payloads && reason !== undefined ? { reason } : null),
    }
  }

  #task(task: Task, now: Instant, json = task.toJSON()): Json {
    const shown = withoutTokens(json)
    const { input, output, outputError, progress, lastError, tags, history, steps, signals, ...rest } = shown
    return {
      ...rest,
      // The estimate may be behind the move that was just written.
      view: task.viewAt(Math.max(now, task.updatedAt)),
      input: this.#payload(input),
      output: this.#payload(output),
      outputError: outputError === null || this.#payloads ? outputError : '',
      progress: this.#payload(progress),
      payloads: this.#how,
      tags: this.#hidden(tags),
      lastError: this.#error(lastError as Json | null),
      steps: (steps as readonly Json[]).map((step) => this.#step(step)),
      signals: (signals as readonly Json[]).map((signal) => this.#step(signal)),
      history: this.#payloads
        ? history
        : (history as readonly Json[]).map(({ error: _, reason: __, ...entry }) => entry),
    }
  }

  get #how(): 'shown' | 'redacted' | 'withheld' {
    if (!this.#payloads) return 'withheld'
    return this.#isSecret === null ? 'shown' : 'redacted'
  }

  #payload(value: unknown): unknown {
    return this.#payloads ? this.#hidden(value) : null
  }

  #hidden(value: unknown): unknown {
    return this.#isSecret === null ? value : redacted(value, this.#isSecret)
  }

  /** A step or a signal. The refusal of a signal may quote its value. */
  #step({ value, error, ...rest }: Json): Json {
    return {
      ...rest,
      ...(value === undefined ? null : { value: this.#payload(value) }),
      ...(error === undefined ? null : { error: this.#payloads ? error : '' }),
    }
  }

  /** The message may quote the input. */
  #error(error: Json | null): Json | null {
    if (error === null || this.#payloads) return error
    const { stack: _, detail: __, cause: ___, errors: ____, ...rest } = error
    return { ...rest, message: '' }
  }
}

/** Characters of a message in a list. */
const LONGEST_MESSAGE = 500

const shortError = (error: Json | null): Json | null => {
  if (error === null) return null
  const { name, message, code, at, attempt } = error
  return {
    name,
    message: String(message).slice(0, LONGEST_MESSAGE),
    at,
    attempt,
    ...(code === undefined ? null : { code }),
  }
}

const withoutTokens = ({ lease, history, ...task }: Json): Json => {
  const { token: _, ...shown } = (lease ?? {}) as Json
  return {
    ...task,
    lease: lease === null ? null : shown,
    history: ((history ?? []) as readonly Json[]).map(({ op: __, ...entry }) => entry),
  }
}

/** Recursion is safe: payloads nest at most 256 levels. */
const redacted = (value: unknown, isSecret: (key: string) => boolean): unknown => {
  if (Array.isArray(value)) return value.map((item) => redacted(item, isSecret))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, isSecret(key) ? REDACTED : redacted(inner, isSecret)]),
  )
}

const instants = (given: Readonly<Record<string, Instant | undefined>>): Json =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, at]) => (at === undefined ? [] : [[name, new Date(at).toISOString()]])),
  )
