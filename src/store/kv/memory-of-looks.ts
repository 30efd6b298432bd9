/** What this process knows about hints without reading their tasks, so that a look reads only what may have changed. Bounded. */
import type { Instant } from '../../core/task.ts'
import { prefixOfHint } from './names.ts'

const MOST = 50_000

/** Until some instant its task is `leased`, or was read in passing and is `pending`, or is not what the hint says: `behind`. */
export interface Knowledge {
  readonly until: Instant
  readonly task: 'leased' | 'pending' | 'behind'
}

export class MemoryOfLooks {
  readonly #queues = new Map<string, Map<string, Knowledge>>()

  get(hint: string): Knowledge | undefined {
    return this.#queues.get(prefixOfHint(hint))?.get(hint)
  }

  set(hint: string, knowledge: Knowledge): void {
    const prefix = prefixOfHint(hint)
    const known = this.#queues.get(prefix) ?? new Map<string, Knowledge>()
    this.#queues.set(prefix, known)
    known.delete(hint)
    known.set(hint, knowledge)
    if (known.size > MOST) known.delete(known.keys().next().value!)
  }

  delete(hint: string): void {
    this.#queues.get(prefixOfHint(hint))?.delete(hint)
  }

  /** Of this queue, with when the lease ends as far as we know. */
  leased(prefix: string): readonly (readonly [hint: string, until: Instant])[] {
    const known = this.#queues.get(prefix)
    if (known === undefined) return []
    const leased: (readonly [string, Instant])[] = []
    for (const [hint, { until, task }] of known) if (task === 'leased') leased.push([hint, until])
    return leased
  }
}
