/** What this process knows about the tasks behind hints, so that a claim reads only what may have changed. Bounded. */
import type { Instant } from '../../../core/task.ts'
import { queuePrefixOf } from '../records/hint-names.ts'

const MOST = 50_000

/** `mismatch`: the task does not name this hint (yet), or cannot be read. */
export interface HintState {
  readonly until: Instant
  readonly task: 'leased' | 'pending' | 'mismatch'
}

export class HintCache {
  readonly #queues = new Map<string, Map<string, HintState>>()

  get(hint: string): HintState | undefined {
    return this.#queues.get(queuePrefixOf(hint))?.get(hint)
  }

  set(hint: string, state: HintState): void {
    const prefix = queuePrefixOf(hint)
    const states = this.#queues.get(prefix) ?? new Map<string, HintState>()
    this.#queues.set(prefix, states)
    states.delete(hint)
    states.set(hint, state)
    if (states.size > MOST) states.delete(states.keys().next().value!)
  }

  delete(hint: string): void {
    this.#queues.get(queuePrefixOf(hint))?.delete(hint)
  }

  /** The hints of a queue whose tasks are leased, with the last known end of each lease. */
  leased(prefix: string): readonly (readonly [hint: string, until: Instant])[] {
    const states = this.#queues.get(prefix)
    if (states === undefined) return []
    const leased: (readonly [string, Instant])[] = []
    for (const [hint, { until, task }] of states) if (task === 'leased') leased.push([hint, until])
    return leased
  }
}
