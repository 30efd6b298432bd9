/** Pauses the new store while a move copies into it. These pauses are marked as belonging to the move, and end with it. */

import { isInForce, type Pause, readPause } from '../../core/flow/pause.ts'
import { readFlow } from '../../core/flow/queue-flow.ts'
import { FLOW, PAUSE, QUEUE } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import { pause } from '../clock.ts'
import { editDocument } from '../documents.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'
import { liveWorkers } from '../worker/registration.ts'
import { joinFlow } from './flow.ts'

/** After this long every worker has seen a pause and has the replies to its earlier claims. */
const SEEN_AFTER = 5_000

export class MovePauses {
  readonly #to: Session
  readonly #mark: { readonly id: string; readonly from: string }
  readonly #held = new Set<string>()

  constructor(to: Session, id: string, from: string) {
    this.#to = to
    this.#mark = { id, from }
  }

  /** Resolves when no worker of the new store can claim from these queues, or when `signal` aborts. */
  async hold(queues: Iterable<string>, signal?: AbortSignal): Promise<void> {
    let since = Number.NEGATIVE_INFINITY
    for (const queue of queues) {
      if (this.#held.has(queue)) continue
      since = Math.max(since, await this.#holdOne(queue))
      this.#held.add(queue)
    }
    if (since === Number.NEGATIVE_INFINITY || (await liveWorkers(this.#to)).length === 0) return
    const left = since + SEEN_AFTER - this.#to.time.now()
    if (left > 0) await pause(this.#to.clock, left, signal)
  }

  /** Returns since when the queue is paused. A queue that was paused before stays paused after the move. */
  async #holdOne(queue: string): Promise<Instant> {
    const { time, name: by } = this.#to
    const at = new Date(time.now()).toISOString()
    const reason = `moving from ${this.#mark.from}`
    let since = at
    await editDocument(this.#to, PAUSE + queue, (text) => {
      const kept = text === null ? null : readPause(text)
      const before = kept !== null && isInForce(kept, time.now()) ? kept : null
      since = before?.at ?? at
      if (before?.move?.id === this.#mark.id) return text
      const held: Pause =
        before === null ? { at, by, reason, move: this.#marked(false) } : { ...before, move: this.#marked(true) }
      return JSON.stringify(held)
    })
    return Date.parse(since) || time.now()
  }

  #marked(keep: boolean): NonNullable<Pause['move']> {
    return { ...this.#mark, keep }
  }

  /** Resumes the new store. A queue that was paused in either store for another reason stays paused. */
  async release(from: Session): Promise<void> {
    const { documents } = this.#to.store
    const wanted = new Map(
      (await withPatience(from, () => from.store.documents.list(PAUSE))).map((document) => [
        document.name,
        document.value,
      ]),
    )
    for (const [name, value] of wanted) await withPatience(this.#to, () => documents.put(name, value, 0))
    for (const { name } of await withPatience(this.#to, () => documents.list(PAUSE))) {
      await this.#releaseOne(name, wanted.get(name))
    }
  }

  #releaseOne(name: string, wanted: string | undefined): Promise<void> {
    return editDocument(this.#to, name, (text) => {
      if (text === null) return null
      const { move, ...held } = readPause(text)
      if (move?.id !== this.#mark.id) return text
      return move.keep ? JSON.stringify(held) : (wanted ?? null)
    })
  }
}

/** Copies the names of queues, their limits and their paused groups to the new store. */
export const copyQueues = async (from: Session, to: Session): Promise<string[]> => {
  const documents = await withPatience(from, () => from.store.documents.list(QUEUE))
  const flows = await withPatience(from, () => from.store.documents.list(FLOW))
  for (const { name, value } of documents) await withPatience(to, () => to.store.documents.put(name, value, 0))
  for (const { name, value } of flows) await joinFlow(to, name.slice(FLOW.length), readFlow(value))
  return documents.map(({ name }) => name.slice(QUEUE.length))
}
