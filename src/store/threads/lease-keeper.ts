/** Keeps held leases alive: one round of renewals every so often. Runs on whatever thread its owner runs on. */

import { type HeldLease, type Keeper, type KeeperOptions, type Renewal, type Renewed, UNHELD } from '../store.ts'
import { ClaimsUnderWay } from './claims-under-way.ts'
import { GivenBack, type LeaseName, type TasksOfStore } from './given-back.ts'
import type { LeaseBoard } from './lease-board.ts'
import { type PackedLeases, unpackLeases } from './packed-leases.ts'

/** The little that a keeper needs of the world around it. */
export interface KeeperHost {
  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]>
  /** What the claim `op` of this worker has leased. Left out: it is kept only once its reply was seen. */
  leasedBy?(workerId: string, op: string): Promise<readonly LeaseName[]>
  /** With it a keeper returns to the queue what waits behind a still event loop. Left out: that lapses. */
  readonly tasks?: TasksOfStore
  /** Monotonic milliseconds, the same for all threads of the process. */
  mono(): number
  /** Calls `tick` after `delay`; returns the way to stop it. */
  after(delay: number, tick: () => void): () => void
}

/** A lease is renewed early, out of turn, when its handler reports progress: at most this often. */
const PROGRESS_EVERY = 500
/** In lease lengths: how long an event loop may be still before what waits behind it is given back. */
const STALL = 1
/** The same where nothing can be given back, and it lapses. */
const LONG_STALL = 2
/** In rounds: a lease so young has nearly all of its time before it, and most tasks end before the next round. */
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
  /** Not yet looked at. */
  #packed: { readonly leases: PackedLeases; readonly since: number }[] = []
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

  claiming(op: string, ticket: number): void {
    if (this.#host.leasedBy === undefined) return
    this.#claims.add(op, ticket, this.#host.mono())
    this.#arm(this.#options.every)
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

  get #isIdle(): boolean {
    const hasLeases = this.#held.size > 0 || this.#packed.length > 0
    return !hasLeases && this.#claims.isEmpty && (this.#givenBack?.isEmpty ?? true)
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
    // Contact may be lost: the next round tries again, and the holders' own deadlines run on meanwhile.
    await Promise.allSettled([this.#renew(turn), this.#keepClaimed(now)])
    if (this.#givenBack?.isEmpty === false) await this.#givenBack.write().catch(() => {})
    this.#arm(every)
  }

  /** What was leased by claims whose replies were not seen. Most are answered long before they are half a round old. */
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
