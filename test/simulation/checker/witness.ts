/** What handlers and callers saw themselves, so that the store is never its own only witness. */
export interface Start {
  readonly id: string
  readonly fence: number
  readonly worker: string
  readonly input: string
  /** Virtual time. */
  readonly at: number
  /** Of the lease, if it was claimed by hand. */
  readonly token?: string | null
  /** JSON of what the handler returned. */
  output?: string
}

export interface Submitted {
  /** null: the store chose it, and the call was unclear. */
  readonly id: string | null
  readonly key: string | null
  readonly coalesceKey: string | null
  readonly begunAt: number
  /** info: the outcome is unknown. */
  outcome: 'ok' | 'info' | 'refused'
  /** Of the task that the caller was given. */
  given: string | null
}

export class Witness {
  readonly starts = new Map<string, Start[]>()
  readonly submits: Submitted[] = []
  /** JSON of each input that a task may have. */
  readonly inputs = new Map<string, Set<string>>()
  /** Tasks that others than callers make: schedules, replays as new, handlers. */
  begun = 0

  start(start: Start): Start {
    this.begun++
    const known = this.starts.get(start.id)
    if (known === undefined) this.starts.set(start.id, [start])
    else known.push(start)
    return start
  }

  /** A worker that claims by hand what it holds already gets the same lease, and goes on with the same run. */
  startByHand(start: Start): Start {
    const held = this.starts
      .get(start.id)
      ?.find(({ token, worker }) => token === start.token && worker === start.worker)
    return held ?? this.start(start)
  }

  mayHave(id: string, input: unknown): void {
    const text = JSON.stringify(input)
    const known = this.inputs.get(id)
    if (known === undefined) this.inputs.set(id, new Set([text]))
    else known.add(text)
  }
}
