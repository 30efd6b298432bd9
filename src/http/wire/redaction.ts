/** Removes what a caller may not see: lease tokens, payloads without the right, and redacted keys. */
import type { DeadGroup, Instant, Schedule, Task, TaskChange } from '../../index.ts'

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

export class Redaction {
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

  /** For the worker that claimed it: everything, unredacted. */
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
    const { input, output, outputError, progress, lastError, tags, history, ...rest } = withoutTokens(task.toJSON())
    return {
      ...rest,
      view: task.viewAt(now),
      input: this.#payload(input),
      output: this.#payload(output),
      outputError: outputError === null || this.#payloads ? outputError : '',
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

  /** The message may quote the input. */
  #error(error: Json | null): Json | null {
    if (error === null || this.#payloads) return error
    const { stack: _, detail: __, cause: ___, errors: ____, ...rest } = error
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
