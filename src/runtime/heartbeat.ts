/** Keeps a worker's leases alive from the moment of claim, and tells each attempt what the store says of its lease. */
import { LeaseBoard } from '../store/lease-board.ts'
import { LeaseKeeper } from '../store/lease-keeper.ts'
import type { Keeper, KeeperReport } from '../store/store.ts'
import type { Attempt } from './attempt.ts'
import type { Cancel } from './clock.ts'
import type { Session } from './session.ts'

export class Heartbeat {
  readonly #session: Session
  readonly #leaseTtl: number
  readonly #board: LeaseBoard
  readonly #keeper: Keeper
  /** By slot. */
  readonly #attempts: (Attempt | null)[] = []
  #held = 0
  readonly #freeSlots: number[] = []
  #stopBeat: Cancel | null = null

  /** `most`: how many leases may be held at once. */
  constructor(session: Session, leaseTtl: number, most: number) {
    this.#session = session
    this.#leaseTtl = leaseTtl
    this.#board = LeaseBoard.withSlots(most)
    for (let slot = most - 1; slot >= 0; slot--) {
      this.#freeSlots.push(slot)
      this.#attempts.push(null)
    }
    const report = (results: readonly KeeperReport[], at: number): void => this.#report(results, at)
    const options = { board: this.#board, leaseTtl, every: leaseTtl / 3, report }
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

  /** From the moment of claim, before anything runs. */
  hold(attempts: readonly Attempt[]): void {
    this.#board.beat(this.#session.clock.mono())
    const leases = attempts.map((attempt) => {
      const slot = this.#freeSlots.pop()!
      attempt.slot = slot
      this.#board.wait(slot)
      this.#attempts[slot] = attempt
      return { slot, id: attempt.record.id, token: attempt.token }
    })
    this.#held += leases.length
    this.#keeper.hold(leases)
    this.#beatOn()
  }

  /** Before the handler is called: the keeper must see it even if the handler never yields. */
  started(attempt: Attempt): void {
    this.#board.start(attempt.slot, attempt.until)
  }

  progress(attempt: Attempt, progress: string): void {
    if (this.#holds(attempt)) this.#keeper.progress(attempt.slot, progress)
  }

  /** Its lease has ended, or nobody wants it kept. */
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
    this.#attempts.fill(null)
    this.#held = 0
  }

  #holds(attempt: Attempt): boolean {
    return this.#attempts[attempt.slot] === attempt
  }

  /** While anything is held: shows the keeper that this event loop is alive, and fences what was not renewed in time. */
  #beatOn(): void {
    if (this.#stopBeat) return
    this.#stopBeat = this.#session.clock.after(this.#leaseTtl / 3, () => {
      this.#stopBeat = null
      this.#board.beat(this.#session.clock.mono())
      this.#fenceOverdue()
      if (this.#held > 0) this.#beatOn()
    })
  }

  /** The holder's own deadline: contact may be lost, and somebody else may have the task by now. */
  #fenceOverdue(): void {
    for (const attempt of this.#attempts) if (attempt !== null && this.isOverdue(attempt)) attempt.loseLease()
  }

  /** Its lease may be over, as far as this process knows: the process may have been stopped, or cut off. */
  isOverdue(attempt: Attempt): boolean {
    return this.#session.clock.mono() - attempt.renewedAt > this.#leaseTtl
  }

  #report(results: readonly KeeperReport[], renewedAt: number): void {
    for (const { slot, token, renewed } of results) {
      const attempt = this.#attempts[slot] ?? null
      // The slot may be another's by now.
      if (attempt === null || attempt.token !== token) continue
      if (renewed === 'lost') {
        this.drop(attempt)
        attempt.loseLease()
        continue
      }
      attempt.renewedAt = renewedAt
      if (renewed === 'cancel') attempt.abort('cancelled')
    }
  }
}
