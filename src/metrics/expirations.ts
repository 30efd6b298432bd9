/** Pending tasks that will expire, as far as this process has seen them: enough to warn in advance. */
import type { Instant, Task } from '../index.ts'

interface Waiting {
  readonly type: string
  readonly queue: string
  readonly expiresAt: Instant
}

/** Beyond this number, the oldest are forgotten. */
const MOST = 100_000
const NEAR = 60_000

export class Expirations {
  readonly #waiting = new Map<string, Waiting>()

  /** Call it after a move, or when the task was read. */
  see({ id, type, queue, status, expiresAt }: Task): void {
    this.#waiting.delete(id)
    if (status !== 'pending' || expiresAt === null) return
    this.#waiting.set(id, { type, queue, expiresAt })
    if (this.#waiting.size > MOST) this.#waiting.delete(this.#waiting.keys().next().value!)
  }

  forget(id: string): void {
    this.#waiting.delete(id)
  }

  /** The tasks that expire soon, in the order in which they were first seen. */
  idsNear(now: Instant, most: number): string[] {
    const ids: string[] = []
    for (const [id, { expiresAt }] of this.#waiting) {
      if (ids.length === most) break
      if (expiresAt > now && expiresAt <= now + NEAR) ids.push(id)
    }
    return ids
  }

  /** How many expire soon, by type and queue. */
  near(now: Instant): { readonly type: string; readonly queue: string; readonly count: number }[] {
    const groups = new Map<string, { type: string; queue: string; count: number }>()
    for (const [id, { type, queue, expiresAt }] of this.#waiting) {
      if (expiresAt <= now) this.#waiting.delete(id)
      else if (expiresAt <= now + NEAR) {
        const key = JSON.stringify([type, queue])
        const group = groups.get(key)
        if (group === undefined) groups.set(key, { type, queue, count: 1 })
        else group.count++
      }
    }
    return [...groups.values()]
  }
}
