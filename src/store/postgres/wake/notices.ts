/**
 * Decides when to notify other processes that a queue has work. While a queue is quiet, a notice is sent at once, with the write itself
 * where possible. NOTIFY takes a lock that all commits share, so the next notice for the same queue waits for the reply to the previous
 * one, and then as long again as that reply took: the busier the server, the fewer notices it gets. Writes during the wait get a notice
 * at its end, so that no task waits for the next poll.
 */
interface Waiting {
  readonly began: number
  timer: NodeJS.Timeout | null
  /** Something was written after the notice in flight was sent. */
  isMore: boolean
}

/** A notice that a write can carry. */
export interface Notice {
  /** The queues that may be notified now. */
  readonly queues: readonly string[]
  /** Call it when the write has ended, successfully or not. */
  end(): void
}

const SHORTEST_WAIT = 1
const LONGEST_WAIT = 50

export class Notices {
  readonly #send: (queues: readonly string[]) => Promise<unknown>
  readonly #waiting = new Map<string, Waiting>()
  #closed = false

  constructor(send: (queues: readonly string[]) => Promise<unknown>) {
    this.#send = send
  }

  begin(queues: readonly string[]): Notice {
    const now = this.#closed ? [] : queues.filter((queue) => !this.#waiting.has(queue))
    for (const queue of now) this.#waiting.set(queue, { began: performance.now(), timer: null, isMore: false })
    return {
      queues: now,
      end: () => {
        for (const queue of queues) {
          if (now.includes(queue)) this.#answered(queue)
          else this.#notifyLater(queue)
        }
      },
    }
  }

  /** Sends a notice without a write. */
  notify(queues: readonly string[]): void {
    const notice = this.begin(queues)
    const sent = notice.queues.length > 0 ? this.#send(notice.queues).catch(() => {}) : Promise.resolve()
    void sent.then(() => notice.end())
  }

  close(): void {
    this.#closed = true
    for (const { timer } of this.#waiting.values()) if (timer !== null) clearTimeout(timer)
  }

  #answered(queue: string): void {
    const waiting = this.#waiting.get(queue)
    if (waiting === undefined || this.#closed) return
    const took = performance.now() - waiting.began
    waiting.timer = setTimeout(
      () => {
        this.#waiting.delete(queue)
        if (waiting.isMore) this.notify([queue])
      },
      Math.min(Math.max(took, SHORTEST_WAIT), LONGEST_WAIT),
    )
    waiting.timer.unref()
  }

  #notifyLater(queue: string): void {
    const waiting = this.#waiting.get(queue)
    if (waiting !== undefined) waiting.isMore = true
    else if (!this.#closed) this.notify([queue])
  }
}
