/**
 * Places under the limits of a queue: one register for the queue and one for each group. A claim reads the task, takes a place that names
 * task and lease, and then writes the lease from what it read. A place whose task does not have that lease is given up by the process that meets a
 * full register, and only after it is certain that the lease can no longer be written.
 */
import { isContactLost } from '../../../core/errors.ts'
import type { Instant } from '../../../core/task.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import type { Timers } from '../access/timers.ts'
import { isLive, type LiveTask, type Tasks } from '../records/tasks.ts'
import type { Holder } from './place-body.ts'
import { Register } from './register.ts'

const MOST_REGISTERS = 5_000
const TRIES = 5
/** A task that cannot be read is taken for held. */
const UNREADABLE = 60_000

interface Parts {
  readonly kv: RetryingKeyValue
  readonly tasks: Tasks
  readonly timers: Timers
  now(): Promise<Instant>
  /** Where there is no task: no writer that has read one can write it any more. False: there is something by now. */
  writeEmptyTombstone(id: string, now: Instant): Promise<boolean>
  /** A running task was read. When its lease lapses, a claim reports it, though nothing else of a full group is read. */
  observe(live: LiveTask): void
}

export class Places {
  readonly #parts: Parts
  readonly #registers = new Map<string, Register>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  register(key: string): Register {
    const known = this.#registers.get(key)
    if (known !== undefined) return known
    const { kv, timers, now } = this.#parts
    const register = new Register(key, {
      kv,
      now,
      mono: () => timers.mono(),
      leaseOf: (holder) => this.#leaseOf(holder),
    })
    this.#registers.set(key, register)
    this.#forgetSome()
    return register
  }

  /** A register is only a copy, which can be read again. */
  #forgetSome(): void {
    if (this.#registers.size <= MOST_REGISTERS) return
    for (const [key, { isBusy }] of this.#registers) {
      if (!isBusy) this.#registers.delete(key)
      if (this.#registers.size <= MOST_REGISTERS / 2) return
    }
  }

  give(keys: readonly string[], token: string): void {
    for (const key of keys) this.register(key).give([token])
  }

  async finished(): Promise<void> {
    await Promise.all([...this.#registers.values()].map((register) => register.finished()))
  }

  async #leaseOf(holder: Holder): Promise<number | null> {
    const { tasks, now } = this.#parts
    const cached = tasks.cache.get(holder.id)?.task.lease
    for (let tries = 0; tries < TRIES; tries++) {
      const at = await now()
      if (tries === 0 && cached?.token === holder.token && cached.expiresAt > at) return cached.expiresAt - at
      try {
        const stored = await tasks.read(holder.id)
        if (isLive(stored) && stored.task.lease?.token === holder.token) {
          this.#parts.observe(stored)
          return stored.task.lease.expiresAt - at
        }
        // The write that the claim would be has been made by another: a claim that comes late fails.
        if (stored !== null && stored.sequence > holder.sequence) return null
        // The writer of the claim may only be slow. After this it cannot write any more.
        if (stored === null ? await this.#parts.writeEmptyTombstone(holder.id, at) : !isLive(stored)) return null
        if (isLive(stored) && (await tasks.touch(stored))) return null
      } catch (error) {
        if (isContactLost(error)) throw error
        return UNREADABLE
      }
    }
    return 0
  }
}
