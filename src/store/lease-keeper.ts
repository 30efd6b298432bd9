/** Keeps held leases alive: one round of renewals every so often. Runs on whatever thread its owner runs on. */
import type { LeaseBoard } from './lease-board.ts'
import { type PackedLeases, unpackLeases } from './packed-leases.ts'
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
/** In lease lengths: how long an event loop may be still before what waits behind it is let go. */
const STALL = 2

export class LeaseKeeper implements Keeper {
  readonly #options: KeeperOptions
  readonly #board: LeaseBoard
  readonly #host: KeeperHost
  readonly #held = new Map<number, HeldLease>()
  /** Not yet looked at. */
  #packed: PackedLeases[] = []
  #stop: (() => void) | null = null
  #dueAt = Number.POSITIVE_INFINITY
  #closed = false

  constructor(options: KeeperOptions, host: KeeperHost) {
    this.#options = options
    this.#board = options.board
    this.#host = host
  }

  hold(leases: readonly HeldLease[]): void {
    for (const lease of leases) this.#held.set(lease.slot, lease)
    this.#arm(this.#options.every)
  }

  /** From another thread. */
  holdPacked(leases: PackedLeases): void {
    this.#packed.push(leases)
    this.#arm(this.#options.every)
  }

  progress(slot: number, progress: string): void {
    this.#unpack()
    const lease = this.#held.get(slot)
    if (lease === undefined) return
    this.#held.set(slot, { ...lease, progress })
    this.#arm(Math.min(PROGRESS_EVERY, this.#options.every))
  }

  close(): void {
    this.#closed = true
    this.#stop?.()
    this.#held.clear()
    this.#packed = []
  }

  /** In the order in which they came: a slot belongs to whom it was given last. */
  #unpack(): void {
    for (const packed of this.#packed.splice(0)) this.hold(unpackLeases(packed, (slot) => !this.#board.isFree(slot)))
  }

  #arm(delay: number): void {
    const dueAt = this.#host.mono() + delay
    if (this.#closed || (this.#held.size === 0 && this.#packed.length === 0) || dueAt >= this.#dueAt) return
    this.#stop?.()
    this.#dueAt = dueAt
    this.#stop = this.#host.after(delay, () => void this.#round())
  }

  async #round(): Promise<void> {
    const { leaseTtl, every, report } = this.#options
    const sentAt = this.#host.mono()
    this.#unpack()
    const turn = this.#turn(sentAt)
    this.#dueAt = Number.POSITIVE_INFINITY
    this.#arm(every)
    if (turn.length === 0) return
    try {
      const renewed = await this.#host.renew(
        turn.map(({ id, token, progress }) =>
          progress === undefined ? { id, token, leaseTtl } : { id, token, leaseTtl, progress },
        ),
      )
      report(
        renewed.map((outcome, i) => ({ token: turn[i]!.token, renewed: outcome })),
        sentAt,
      )
    } catch {
      // Contact is lost: the next round tries again, and the holders' own deadlines run on meanwhile.
    }
  }

  #turn(now: number): HeldLease[] {
    const turn: HeldLease[] = []
    for (const [slot, lease] of this.#held) {
      if (this.#board.isFree(slot)) this.#held.delete(slot)
      else if (this.#board.mayKeep(slot, now, this.#options.leaseTtl * STALL)) turn.push(lease)
    }
    return turn
  }
}
