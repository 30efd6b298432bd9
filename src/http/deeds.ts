/** What takes longer than a request may: begun by one call, looked at by others. Kept in this process only. */
import { randomUUID } from 'node:crypto'
import { HoldfastError } from '../index.ts'
import { errorOf } from './errors.ts'

export interface Deed {
  readonly id: string
  readonly name: string
  readonly state: 'running' | 'done' | 'failed'
  /** Tasks so far. */
  readonly done: number
  readonly report: Readonly<Record<string, unknown>> | null
  readonly error: object | null
}

/** Those that ended are kept for a while, so that whoever began them can read how it went. */
const KEPT = 100

type Work = (tell: (done: number) => void, signal: AbortSignal) => Promise<Readonly<Record<string, unknown>>>

export class Deeds {
  readonly #deeds = new Map<string, Deed>()
  readonly #stops = new Map<string, AbortController>()

  begin(name: string, work: Work): Deed {
    const id = randomUUID()
    const stop = new AbortController()
    this.#stops.set(id, stop)
    this.#deeds.set(id, { id, name, state: 'running', done: 0, report: null, error: null })
    const change = (facts: Partial<Deed>): void => {
      this.#deeds.set(id, { ...this.#deeds.get(id)!, ...facts })
    }
    const run = async (): Promise<void> => {
      try {
        const report = await work((done) => change({ done }), stop.signal)
        change({ state: 'done', report })
      } catch (error) {
        change({ state: 'failed', error: errorOf(error) })
      }
      this.#stops.delete(id)
      this.#forget()
    }
    void run()
    return this.#deeds.get(id)!
  }

  get(id: string): Deed {
    const deed = this.#deeds.get(id)
    if (deed === undefined) throw new HoldfastError('TASK_NOT_FOUND', `nothing under way has the id ${id}`, { id })
    return deed
  }

  /** Between two batches; what is done stays done. */
  stop(id: string): Deed {
    const deed = this.get(id)
    this.#stops.get(id)?.abort()
    return deed
  }

  close(): void {
    for (const stop of this.#stops.values()) stop.abort()
  }

  #forget(): void {
    for (const { id, state } of this.#deeds.values()) {
      if (this.#deeds.size <= KEPT) return
      if (state !== 'running') this.#deeds.delete(id)
    }
  }
}
