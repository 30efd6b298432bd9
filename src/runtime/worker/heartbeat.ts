/** Renews a worker's leases from the moment of the claim, and reports to each attempt what happened to its lease. */

import { type HeldLease, type Keeper, type KeeperReport, UNHELD } from '../../store/store.ts'
import { LeaseBoard } from '../../store/threads/lease-board.ts'
import { LeaseKeeper } from '../../store/threads/lease-keeper.ts'
import { type Cancel, soon } from '../clock.ts'
import type { Session } from '../session.ts'
import type { Attempt } from './attempt.ts'

export class Heartbeat {
  readonly #session: Session
  readonly #leaseTtl: number
  readonly #board: LeaseBoard
  readonly #keeper: Keeper
  /** By slot. */
  readonly #attempts: (Attempt | null)[] = []
  #held = 0
  readonly #freeSlots: number[] = []
  /** By token: reports about leases whose claim has not been answered yet. */
  readonly #early = new Map<string, { readonly report: KeeperReport; readonly renewedAt: number }>()
  /** The number of claims that have not been answered yet. */
  #claims = 0
  readonly #notHere: () => void
  #stopBeat: Cancel | null = null

  /** `most` is the number of leases that may be held at once. */
  constructor(session: Session, workerId: string, leaseTtl: number, most: number) {
    this.#session = session
    this.#leaseTtl = leaseTtl
    this.#board = LeaseBoard.withSlots(most)
    for (let slot = most - 1; slot >= 0; slot--) {
      this.#freeSlots.push(slot)
      this.#attempts.push(null)
    }
    this.#notHere = session.held.add((token) =>
      this.#attempts.some((attempt) => attempt?.token === token && attempt.abortedFor !== 'lease-lost'),
    )
    const report = (results: readonly KeeperReport[], at: number): void => this.#report(results, at)
    const options = { workerId, board: this.#board, leaseTtl, every: leaseTtl / 3, held: () => this.#leases(), report }
    const { store, clock } = session
    this.#keeper =
      store.keeper?.(options) ??
      new LeaseKeeper(options, {
        renew: (renewals) => store.renew(renewals, null),
        mono: () => clock.mono(),
        after: (delay, tick) => clock.after(delay, tick),
      })
  }

  /** How many more leases can be held. */
  get room(): number {
    return this.#freeSlots.length
  }

  /**
   * A claim is about to be sent. Its leases are renewed from now on, even before the reply is read. The returned function is called once,
   * when the reply arrives or is given up. It returns false if the keeper gave the leases back because the event loop was blocked for too long.
   */
  claiming(op: string): () => boolean {
    const ticket = this.#keeper.claiming === undefined ? null : this.#board.beginClaim()
    if (ticket === null) return () => true
    if (this.#claims++ === 0) this.#early.clear()
    this.#keeper.claiming!(op, ticket, this.#session.clock.mono())
    return () => {
      this.#claims--
      return this.#board.endClaim(ticket)
    }
  }

  /** Called with the reply to a claim that was sent at `askedAt` (monotonic), before any handler runs. */
  hold(attempts: readonly Attempt[], askedAt: number): void {
    this.#board.beat(this.#session.clock.mono())
    const leases = attempts.map((attempt) => {
      const slot = this.#freeSlots.pop()!
      attempt.slot = slot
      this.#board.wait(slot)
      this.#attempts[slot] = attempt
      return leaseOf(attempt)
    })
    this.#held += leases.length
    this.#keeper.hold(leases, askedAt)
    this.#beatOn()
    this.#reportEarly(attempts)
  }

  /** Called before the handler, so that the keeper sees it even if the handler never yields. Returns false if the lease was given back. */
  started(attempt: Attempt): boolean {
    return this.#board.start(attempt.slot, attempt.until)
  }

  /** The handler settled in time: its lease is renewed until the end is written, even past the timeout. */
  settled(attempt: Attempt): void {
    if (this.#holds(attempt)) this.#board.settle(attempt.slot)
  }

  progress(attempt: Attempt, progress: string): void {
    if (this.#holds(attempt)) this.#keeper.progress(attempt.slot, progress)
  }

  /** Stops renewing: the lease has ended or is no longer needed. */
  drop(attempt: Attempt): void {
    if (!this.#holds(attempt)) return
    this.#attempts[attempt.slot] = null
    this.#held--
    this.#board.free(attempt.slot)
    this.#freeSlots.push(attempt.slot)
  }

  close(): void {
    this.#stopBeat?.()
    this.#keeper.close()
    this.#notHere()
    this.#attempts.fill(null)
    this.#held = 0
  }

  /** The lease was renewed so lately that it has not been without renewal for `time`. Also true if it was presumed lost in an outage before that. */
  keptWithin(attempt: Attempt, time: number): boolean {
    return this.#holds(attempt) && !this.isOverdue(attempt, this.#session.clock.mono() - time)
  }

  #leases(): HeldLease[] {
    return this.#attempts.flatMap((attempt) => (attempt === null ? [] : [leaseOf(attempt)]))
  }

  #holds(attempt: Attempt): boolean {
    return this.#attempts[attempt.slot] === attempt
  }

  /** While any lease is held: shows the keeper that this event loop is alive, and aborts attempts whose lease was not renewed in time. */
  #beatOn(): void {
    if (this.#stopBeat) return
    const every = this.#leaseTtl / 3
    const dueAt = this.#session.clock.mono() + every
    this.#stopBeat = this.#session.clock.after(every, () => {
      this.#stopBeat = null
      const now = this.#session.clock.mono()
      this.#board.beat(now)
      // After the event loop was blocked, let it deliver the keeper's reports first.
      if (now - dueAt > every) soon(() => this.#fenceOverdue())
      else this.#fenceOverdue()
      if (this.#held > 0) this.#beatOn()
    })
  }

  /** Enforces the deadline on the holder's side: without contact, another worker may have the task by now. */
  #fenceOverdue(): void {
    for (const attempt of this.#attempts) if (attempt !== null && this.isOverdue(attempt)) attempt.loseLease()
  }

  /** The lease may have lapsed as far as this process knows: it may have been suspended or cut off. */
  isOverdue(attempt: Attempt, now = this.#session.clock.mono()): boolean {
    if (now - attempt.renewedAt <= this.#leaseTtl) return false
    // This event loop may have been busy: read the keeper's pending reports first.
    this.#keeper.reportNow?.()
    return now - attempt.renewedAt > this.#leaseTtl
  }

  #report(results: readonly KeeperReport[], renewedAt: number): void {
    for (const report of results) {
      if (report.slot === UNHELD) this.#early.set(report.token, { report, renewedAt })
      // The slot may belong to another attempt by now.
      else if (this.#attempts[report.slot]?.token === report.token)
        this.#tell(this.#attempts[report.slot]!, report, renewedAt)
    }
  }

  #reportEarly(attempts: readonly Attempt[]): void {
    this.#keeper.reportNow?.()
    if (this.#early.size === 0) return
    for (const attempt of attempts) {
      const early = this.#early.get(attempt.token)
      if (early !== undefined) this.#tell(attempt, early.report, early.renewedAt)
    }
  }

  #tell(attempt: Attempt, { renewed }: KeeperReport, renewedAt: number): void {
    if (renewed === 'lost') {
      this.drop(attempt)
      attempt.loseLease()
      return
    }
    // While a transaction of the handler locks the row, no other worker can take the lease. A lock of another process may be released soon.
    if (renewed === 'locked' && !attempt.hasJoined) return
    attempt.renewedAt = Math.max(attempt.renewedAt, renewedAt)
    if (renewed === 'cancel') attempt.abort('cancelled')
  }
}

const leaseOf = ({ slot, record: { id }, token }: Attempt): HeldLease => ({ slot, id, token })
