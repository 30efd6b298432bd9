/** What of a task, a schedule or an error a caller gets to see: no lease tokens, no payloads without the right, no redacted keys. */
import type { DeadGroup, Instant, Schedule, Task, TaskChange } from '../index.ts'

const REDACTED = '[redacted]'

type Json = Record<string, unknown>

/** Key patterns with `*` for anything, as one test; upper and lower case alike. */
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

/** Piece after piece, without a regular expression: linear whatever the key is. */
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

export class Showing {
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

  /** The store's time, near enough to name a view. */
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

  /** For the worker that claimed it: everything, as it was submitted. */
  async claimed(task: Task): Promise<Json> {
    return { ...withoutTokens(task.toJSON()), view: task.viewAt(await this.#now()), payloads: 'shown' }
  }

  async group({ sample, ...group }: DeadGroup): Promise<Json> {
    return {
      ...group,
      pattern: this.#payloads ? group.pattern : '',
      firstSeenAt: new Date(group.firstSeenAt).toISOString(),
      lastSeenAt: new Date(group.lastSeenAt).toISOString(),
      sample: await this.task(sample),
    }
  }

  schedule(schedule: Schedule): Json {
    const { input, options, ...rest } = schedule.toJSON()
    return { ...rest, options, input: this.#payload(input), payloads: this.#how }
  }

  change({ entry, task }: TaskChange): Json {
    const { op: _, at, availableAt, expiresAt, expiredAt, error, reason, ...facts } = entry
    return {
      id: task.id,
      type: task.type,
      queue: task.queue,
      ...facts,
      ...instants({ at, availableAt, expiresAt, expiredAt }),
      ...(this.#payloads && error !== undefined ? { error } : null),
      ...(this.#payloads && reason !== undefined ? { reason } : null),
    }
  }

  #task(task: Task, now: Instant): Json {
    const { input, output, progress, lastError, tags, history, ...rest } = withoutTokens(task.toJSON())
    return {
      ...rest,
      view: task.viewAt(now),
      input: this.#payload(input),
      output: this.#payload(output),
      progress: this.#payload(progress),
      payloads: this.#how,
      tags: this.#isSecret === null ? tags : redacted(tags, this.#isSecret),
      lastError: this.#error(lastError as Json | null),
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
    if (!this.#payloads) return null
    return this.#isSecret === null ? value : redacted(value, this.#isSecret)
  }

  /** Its text may quote what the handler was given. */
  #error(error: Json | null): Json | null {
    if (error === null || this.#payloads) return error
    const { stack: _, ...rest } = error
    return { ...rest, message: '' }
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

/** A loop of its own depth: payloads nest no deeper than 256. */
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
