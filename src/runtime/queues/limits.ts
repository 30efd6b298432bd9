/** The limits of queues and the pauses of their groups: kept as documents of the store, as of the last refresh here. */

import { checkLimits, isFair, type LimitOptions } from '../../core/flow/limits.ts'
import { isInForce, type Pause } from '../../core/flow/pause.ts'
import {
  type QueueFlow,
  type QueueLimits,
  readFlow,
  withGroupPause,
  withLimits,
  writeFlow,
} from '../../core/flow/queue-flow.ts'
import { FLOW } from '../../core/storage/document-names.ts'
import { checkName } from '../../core/submission.ts'
import { editDocument } from '../documents.ts'
import { type Patience, withPatience } from '../patience.ts'
import type { Session } from '../session.ts'

export class Limits {
  readonly #session: Session
  #flows: ReadonlyMap<string, QueueFlow> = new Map()

  constructor(session: Session) {
    this.#session = session
  }

  async refresh(patience: Patience = {}): Promise<void> {
    const documents = await withPatience(this.#session, () => this.#session.store.documents.list(FLOW), patience)
    this.#flows = new Map(documents.map(({ name, value }) => [name.slice(FLOW.length), readFlow(value)]))
  }

  /** Queues with limits or with paused groups, also before their first task. */
  get queues(): readonly string[] {
    return [...this.#flows.keys()]
  }

  /** null: the queue has no limits. */
  of(queue: string): QueueLimits | null {
    return this.#flows.get(queue)?.limits ?? null
  }

  pausedGroups(queue: string): ReadonlyMap<string, Pause> {
    const { pausedGroups } = this.#flows.get(queue) ?? {}
    if (pausedGroups === undefined) return NONE
    const now = this.#session.time.now()
    return new Map(Object.entries(pausedGroups).filter(([, pause]) => isInForce(pause, now)))
  }

  /** Whether claims of this queue differ from those of a queue without limits. */
  isBound(queue: string): boolean {
    return this.of(queue) !== null || this.pausedGroups(queue).size > 0
  }

  /** Whether groups take turns in this queue. With a paused group they do, so that its tasks are not in the way. */
  hasTurns(queue: string): boolean {
    const limits = this.of(queue)
    return (limits !== null && isFair(limits)) || this.pausedGroups(queue).size > 0
  }

  /** null: no limits. */
  async set(queue: string, options: LimitOptions | null): Promise<void> {
    const limits: QueueLimits | null =
      options === null
        ? null
        : { ...checkLimits(options), at: new Date(this.#session.time.now()).toISOString(), by: this.#session.name }
    await this.#change(queue, (flow) => withLimits(flow, limits))
  }

  async pauseGroup(queue: string, group: string, wanted: Pause | null): Promise<void> {
    const now = this.#session.time.now()
    await this.#change(queue, (flow) => withGroupPause(flow, group, wanted, now))
  }

  async #change(queue: string, decide: (flow: QueueFlow) => QueueFlow): Promise<void> {
    const name = checkName(queue, 'queue')
    // In this process at once: no further task starts while it is being written.
    this.#flows = new Map(this.#flows).set(name, decide(this.#flows.get(name) ?? {}))
    try {
      await editDocument(this.#session, FLOW + name, (text) => writeFlow(decide(readFlow(text))))
    } finally {
      await this.refresh()
    }
  }
}

const NONE: ReadonlyMap<string, Pause> = new Map()
