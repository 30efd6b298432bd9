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
/** In rounds: a lease so young has nearly all of its time before it, and most tasks end before the next round. */
const YOUNG = 1 / 2

interface Kept {
  readonly lease: HeldLease
  /** Monotonic. */
  readonly since: number
}

export class LeaseKeeper implements Keeper {
  readonly #options: KeeperOptions
  readonly #board: LeaseBoard
  readonly #host: KeeperHost
  readonly #held = new Map<number, Kept>()
  /** Not yet looked at. */
  #packed: { readonly leases: PackedLeases; readonly since: number }[] = []
  #stop: (() => void) | null = null
  #dueAt = Number.POSITIVE_INFINITY
  #closed = false

  constructor(options: KeeperOptions, host: KeeperHost) {
    this.#options = options
    this.#board = options.board
    this.#host = host
  }

  hold(leases: readonly HeldLease[]): void {
    this.#keep(leases, this.#host.mono())
    this.#arm(this.#options.every)
  }

  /** From another thread. */
  holdPacked(leases: PackedLeases): void {
    this.#packed.push({ leases, since: this.#host.mono() })
    this.#arm(this.#options.every)
  }

  progress(slot: number, progress: string): void {
    this.#unpack()
    const kept = this.#held.get(slot)
    if (kept === undefined) return
    this.#held.set(slot, { ...kept, lease: { ...kept.lease, progress } })
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
    for (const { leases, since } of this.#packed.splice(0))
      this.#keep(
        unpackLeases(leases, (slot) => !this.#board.isFree(slot)),
        since,
      )
  }

  #keep(leases: readonly HeldLease[], since: number): void {
    for (const lease of leases) this.#held.set(lease.slot, { lease, since })
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
        renewed.map((outcome, i) => ({ slot: turn[i]!.slot, token: turn[i]!.token, renewed: outcome })),
        sentAt,
      )
    } catch {
      // Contact is lost: the next round tries again, and the holders' own deadlines run on meanwhile.
    }
  }

  #turn(now: number): HeldLease[] {
    const { every, leaseTtl } = this.#options
    const turn: HeldLease[] = []
    for (const [slot, { lease, since }] of this.#held) {
      if (this.#board.isFree(slot)) this.#held.delete(slot)
      else if (now - since < every * YOUNG && lease.progress === undefined) continue
      else if (this.#board.mayKeep(slot, now, leaseTtl * STALL)) turn.push(lease)
    }
    return turn
  }
}
