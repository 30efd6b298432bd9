/** Keeps held leases alive: one round of renewals every so often. Runs on whatever thread its owner runs on. */
import type { HeldLease, Keeper, KeeperOptions, Renewal, Renewed } from './store.ts'

/** The little that a keeper needs of the world around it. */
export interface KeeperHost {
  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]>
  /** Monotonic milliseconds, the same for all threads of the process. */
  mono(): number
  /** Calls `tick` after `delay`; returns the way to stop it. */
  after(delay: number, tick: () => void): () => void
}

/** A lease is renewed early, out of turn, when its handler reports progress: at most this often. */
const PROGRESS_EVERY = 500

export class LeaseKeeper implements Keeper {
  readonly #options: KeeperOptions
  readonly #host: KeeperHost
  readonly #held = new Map<string, HeldLease>()
  #aliveAt: number
  #stop: (() => void) | null = null
  #dueAt = Number.POSITIVE_INFINITY
  #closed = false

  constructor(options: KeeperOptions, host: KeeperHost) {
    this.#options = options
    this.#host = host
    this.#aliveAt = host.mono()
  }

  hold(leases: readonly HeldLease[]): void {
    for (const lease of leases) this.#held.set(lease.token, lease)
    this.#arm(leases.some(({ progress }) => progress !== undefined) ? Math.min(PROGRESS_EVERY, this.#options.every) : this.#options.every)
  }

  drop(tokens: readonly string[]): void {
    for (const token of tokens) this.#held.delete(token)
  }

  beat(): void {
    this.#aliveAt = this.#host.mono()
  }

  close(): void {
    this.#closed = true
    this.#stop?.()
    this.#held.clear()
  }

  #arm(delay: number): void {
    const dueAt = this.#host.mono() + delay
    if (this.#closed || this.#held.size === 0 || dueAt >= this.#dueAt) return
    this.#stop?.()
    this.#dueAt = dueAt
    this.#stop = this.#host.after(delay, () => void this.#round())
  }

  async #round(): Promise<void> {
    const sentAt = this.#host.mono()
    const turn = [...this.#held.values()].filter((lease) => this.#mayKeep(lease, sentAt))
    this.#dueAt = Number.POSITIVE_INFINITY
    this.#arm(this.#options.every)
    if (turn.length === 0) return
    const { leaseTtl } = this.#options
    try {
      const renewed = await this.#host.renew(
        turn.map(({ id, token, progress }) => (progress === undefined ? { id, token, leaseTtl } : { id, token, leaseTtl, progress })),
      )
      for (const [i, outcome] of renewed.entries()) if (outcome === 'lost') this.#held.delete(turn[i]!.token)
      this.#options.report(renewed.map((outcome, i) => ({ token: turn[i]!.token, renewed: outcome })), sentAt)
    } catch {
      // Contact is lost: the next round tries again, and the holders' own deadlines run on meanwhile.
    }
  }

  /** A run past its timeout is not kept; nor is what waits behind an event loop that has stopped. */
  #mayKeep(lease: HeldLease, now: number): boolean {
    if (lease.waiting) return now - this.#aliveAt < this.#options.leaseTtl * 2
    return lease.until === null || now < lease.until
  }
}
