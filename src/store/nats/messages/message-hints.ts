/** Hints as messages: one in a work queue for a task that is due, one in its minute for what happens later. */
import type { Instant } from '../../../core/task.ts'
import type { Retry } from '../../kv/access/retry.ts'
import { Discards } from '../../kv/cleanup/discards.ts'
import type { HintContext, Hints, Survey, SurveyTurns } from '../../kv/hints/hints.ts'
import type { Hint } from '../../kv/records/hint-names.ts'
import { escaped, unescaped } from '../../kv/records/names.ts'
import type { ClaimRequest, WakeListener } from '../../store.ts'
import type { ServerClock } from '../clock.ts'
import type { Connected } from '../connection/connection.ts'
import { hintOf, type Subjects } from '../subjects.ts'
import type { LaterHints } from './later-hints.ts'
import { MessageSurveyor, type SurveyParts } from './message-surveyor.ts'
import type { ReadyMessages } from './ready-messages.ts'

interface Parts extends SurveyParts {
  readonly connected: Connected
  readonly subjects: Subjects
  readonly clock: ServerClock
  /** Rejects when the store is no longer the one that was opened. */
  checkIdentity(): Promise<void>
}

const PAGE = 1_000

export class MessageHints implements Hints {
  readonly #parts: Parts
  readonly #messages: ReadyMessages
  readonly #later: LaterHints
  readonly #surveyor: MessageSurveyor
  readonly #retry: Retry
  readonly #discards: Discards

  constructor(parts: Parts, context: HintContext) {
    this.#parts = parts
    this.#messages = parts.messages
    this.#later = parts.later
    this.#retry = context.retry
    this.#surveyor = new MessageSurveyor(parts, context)
    this.#discards = new Discards((hints) =>
      this.#call(async () => void (await Promise.all(hints.map((hint) => this.#withdraw(hint))))),
    )
  }

  #call<T>(call: () => Promise<T>): Promise<T> {
    const { contact, checkIdentity } = this.#parts
    return this.#retry.run(() =>
      contact.run(async () => {
        await checkIdentity()
        return call()
      }),
    )
  }

  announce(hint: string): Promise<void> {
    return this.#call(() => this.#announce(hint))
  }

  /** A due hint is a ready message. What comes later, such as an expiry, waits in its minute. */
  async #announce(key: string): Promise<void> {
    const { availableAt, expiresAt } = hintOf(key)
    const writes: Promise<void>[] = []
    if (expiresAt !== null) writes.push(this.#later.put(key, 'expiry', expiresAt))
    if (availableAt !== expiresAt) {
      const isLater = availableAt > this.#parts.clock.hintTime
      writes.push(isLater ? this.#later.put(key, 'due', availableAt) : this.#announceReady(key))
    }
    await Promise.all(writes)
  }

  #announceReady(key: string): Promise<void> {
    return hintOf(key).group === null ? this.#messages.announce(key) : this.#parts.grouped.announce(key)
  }

  /** Nothing to do: this process holds the message, and its next claim is offered it. */
  reannounce(): void {}

  /** Nothing to do: there is no copy of the hints in memory. */
  retire(): void {}

  withdraw(hints: readonly string[]): void {
    this.#discards.add(hints)
  }

  isWithdrawn(hint: string): boolean {
    return this.#discards.has(hint)
  }

  async #withdraw(hint: string): Promise<void> {
    const isGrouped = hintOf(hint).group !== null
    await Promise.all([isGrouped ? null : this.#messages.withdraw(hint), this.#later.forget(hint)])
  }

  survey(request: ClaimRequest, now: Instant, turns?: SurveyTurns): Promise<Survey> {
    return this.#surveyor.survey(request, now, turns)
  }

  async *pages(queue: string | null): AsyncGenerator<readonly Hint[]> {
    const keys = await this.#call(() => this.#all(queue === null ? null : escaped(queue)))
    for (let i = 0; i < keys.length; i += PAGE) yield keys.slice(i, i + PAGE).map(hintOf)
  }

  async #all(queue: string | null): Promise<string[]> {
    const { connected, subjects } = this.#parts
    const [ready, later] = await Promise.all([
      connected.subjectsIn(subjects.ready, subjects.messagesIn(queue)),
      this.#later.all(queue),
    ])
    return [...new Set([...ready.map((subject) => subjects.hintOfMessage(subject)), ...later])].sort()
  }

  claimed(): void {}

  listen(listener: WakeListener): () => void {
    return this.#messages.listen((queues) => listener(queues.map(unescaped)))
  }

  async close(): Promise<void> {
    await this.#discards.finished()
    this.#messages.close()
  }
}
