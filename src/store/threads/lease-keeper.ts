/** Renews held leases in periodic rounds. Runs on the thread of its owner. */

import { type HeldLease, type Keeper, type KeeperOptions, type Renewal, type Renewed, UNHELD } from '../store.ts'
import { ClaimsUnderWay } from './claims-under-way.ts'
import { GivenBack, type LeaseName, type TasksOfStore } from './given-back.ts'
import type { LeaseBoard } from './lease-board.ts'
import { type PackedLeases, unpackLeases } from './packed-leases.ts'

/** What a keeper needs from its environment. */
export interface KeeperHost {
  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]>
  /** Returns the leases of this worker's claim `op`. If absent, leases are renewed only after the reply was seen. */
  leasedBy?(workerId: string, op: string): Promise<readonly LeaseName[]>
  /** Lets the keeper release tasks that wait behind a blocked event loop. If absent, they lapse. */
  readonly tasks?: TasksOfStore
  /** Monotonic milliseconds, the same for all threads of the process. */
  mono(): number
  /** Calls `tick` after `delay`. Returns a function that cancels it. */
  after(delay: number, tick: () => void): () => void
}

/** Progress of a handler renews its lease early, at most this often. */
const PROGRESS_EVERY = 500
/** In lease lengths: how long an event loop may be blocked before the tasks that wait behind it are given back. */
const STALL = 1
/** The same for hosts that cannot give tasks back, so that they lapse. */
const LONG_STALL = 2
/** In rounds: a younger lease is not renewed yet. It has most of its time left, and most tasks end before the next round. */
const YOUNG = 1 / 2

interface Kept {
  readonly lease: HeldLease
  /** Monotonic. */
  readonly since: number
}

export class LeaseKeeper implements Keeper {
  readonly #options: Omit<KeeperOptions, 'held'>
  readonly #board: LeaseBoard
  readonly #host: KeeperHost
  readonly #held = new Map<number, Kept>()
  readonly #claims: ClaimsUnderWay
  readonly #givenBack: GivenBack | null
  /** Leases that are not unpacked yet. */
  #packed: PackedLeases[] = []
  #stop: (() => void) | null = null
  #dueAt = Number.POSITIVE_INFINITY
  #closed = false

  constructor(options: Omit<KeeperOptions, 'held'>, host: KeeperHost) {
    this.#options = options
    this.#board = options.board
    this.#host = host
    this.#claims = new ClaimsUnderWay(options.board)
    this.#givenBack = host.tasks === undefined ? null : new GivenBack(host.tasks)
  }

  claiming(op: string, ticket: number, since: number): void {
    if (this.#host.leasedBy === undefined) return
    this.#claims.add(op, ticket, since)
    this.#armFor(since)
  }

  hold(leases: readonly HeldLease[], since: number): void {
    this.#keep(leases, since)
    this.#armFor(since)
  }

  /** Holds leases that were sent from another thread. */
  holdPacked(leases: PackedLeases): void {
    this.#packed.push(leases)
    this.#armFor(leases.since)
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

  /** In the order of arrival, because a slot belongs to the last lease that got it. */
  #unpack(): void {
    for (const packed of this.#packed.splice(0))
      this.#keep(
        unpackLeases(packed, (slot) => !this.#board.isFree(slot)),
        packed.since,
      )
  }

  #keep(leases: readonly HeldLease[], since: number): void {
    for (const lease of leases) this.#held.set(lease.slot, { lease, since })
  }

  get #isIdle(): boolean {
    const hasLeases = this.#held.size > 0 || this.#packed.length > 0
    return !hasLeases && this.#claims.isEmpty && (this.#givenBack?.isEmpty ?? true)
  }

  /** A thread that started late, or had to wait for the processor, has less time left for leases that began at `since`. */
  #armFor(since: number): void {
    this.#arm(Math.max(0, since + this.#options.every - this.#host.mono()))
  }

  #arm(delay: number): void {
    const dueAt = this.#host.mono() + delay
    if (this.#closed || this.#isIdle || dueAt >= this.#dueAt) return
    this.#stop?.()
    this.#dueAt = dueAt
    this.#stop = this.#host.after(delay, () => void this.#round())
  }

  async #round(): Promise<void> {
    const { every } = this.#options
    const now = this.#host.mono()
    this.#unpack()
    const turn = this.#turn(now)
    this.#claims.forgetAnswered()
    this.#dueAt = Number.POSITIVE_INFINITY
    this.#arm(every)
    // If contact is lost, the next round tries again; meanwhile the holders enforce their own deadlines.
    await Promise.allSettled([this.#renew(turn), this.#keepClaimed(now)])
    if (this.#givenBack?.isEmpty === false) await this.#givenBack.write().catch(() => {})
    this.#arm(every)
  }

  /** Renews the leases of claims whose replies were not seen. Most claims are answered long before they are half a round old. */
  async #keepClaimed(now: number): Promise<void> {
    const { workerId, leaseTtl, every } = this.#options
    for (const claim of this.#claims.olderThan(now, every * YOUNG)) {
      const leased = await this.#host.leasedBy!(workerId, claim.op)
      if (leased.length === 0) continue
      const isStill = this.#board.stillFor(now, claim.since) >= leaseTtl * STALL
      if (isStill && this.#givenBack !== null) {
        if (this.#board.giveBackClaim(claim.ticket)) this.#givenBack.add(leased)
      } else await this.#renew(leased.map((lease) => ({ ...lease, slot: UNHELD })))
    }
  }

  async #renew(leases: readonly HeldLease[]): Promise<void> {
    if (leases.length === 0) return
    const { leaseTtl, report } = this.#options
    const sentAt = this.#host.mono()
    const renewed = await this.#host.renew(
      leases.map(({ id, token, progress }) =>
        progress === undefined ? { id, token, leaseTtl } : { id, token, leaseTtl, progress },
      ),
    )
    report(
      renewed.map((outcome, i) => ({ slot: leases[i]!.slot, token: leases[i]!.token, renewed: outcome })),
      sentAt,
    )
  }

  #turn(now: number): HeldLease[] {
    const { every, leaseTtl } = this.#options
    const stall = leaseTtl * (this.#givenBack === null ? LONG_STALL : STALL)
    const turn: HeldLease[] = []
    for (const [slot, { lease, since }] of this.#held) {
      if (this.#board.isFree(slot)) this.#held.delete(slot)
      else if (now - since < every * YOUNG && lease.progress === undefined) continue
      else if (this.#board.mayKeep(slot, now, stall)) turn.push(lease)
      else if (this.#givenBack !== null && this.#board.giveBack(slot)) {
        this.#held.delete(slot)
        this.#givenBack.add([lease])
      }
    }
    return turn
  }
}
