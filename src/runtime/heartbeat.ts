/** Keeps a worker's leases alive from the moment of claim, and tells each attempt what the store says of its lease. */
import { LeaseKeeper } from '../store/lease-keeper.ts'
import type { HeldLease, Keeper, KeeperReport } from '../store/store.ts'
import type { Attempt } from './attempt.ts'
import type { Cancel } from './clock.ts'
import type { Session } from './session.ts'

export class Heartbeat {
  readonly #session: Session
  readonly #leaseTtl: number
  readonly #keeper: Keeper
  readonly #attempts = new Map<string, Attempt>()
  #stopBeat: Cancel | null = null
  #dropped: string[] = []

  constructor(session: Session, leaseTtl: number) {
    this.#session = session
    this.#leaseTtl = leaseTtl
    const options = { leaseTtl, every: leaseTtl / 3, report: (results: readonly KeeperReport[], at: number) => this.#report(results, at) }
    const { store, clock } = session
    this.#keeper =
      store.keeper?.(options) ??
      new LeaseKeeper(options, {
        renew: (renewals) => store.renew(renewals, null),
        mono: () => clock.mono(),
        after: (delay, tick) => clock.after(delay, tick),
      })
  }

  /** From the moment of claim, before anything runs. */
  hold(attempts: readonly Attempt[]): void {
    if (attempts.length === 0) return
    for (const attempt of attempts) this.#attempts.set(attempt.token, attempt)
    this.#keeper.hold(attempts.map((attempt) => heldLease(attempt)))
    this.#beatOn()
  }

  /** Told before the handlers are called: the thread must know it even if the first of them never yields. */
  started(attempts: readonly Attempt[]): void {
    this.#keeper.hold(attempts.map((attempt) => heldLease(attempt)))
  }

  progress(attempt: Attempt, progress: string): void {
    if (this.#attempts.has(attempt.token)) this.#keeper.hold([{ ...heldLease(attempt), progress }])
  }

  /** Its lease has ended, or nobody wants it kept. Many drops of one tick travel together. */
  drop(attempt: Attempt): void {
    if (!this.#attempts.delete(attempt.token)) return
    if (this.#dropped.push(attempt.token) === 1) setImmediate(() => this.#flushDrops())
  }

  #flushDrops(): void {
    this.#keeper.drop(this.#dropped)
    this.#dropped = []
  }

  close(): void {
    this.#stopBeat?.()
    this.#keeper.close()
    this.#attempts.clear()
  }

  /** While anything is held: shows the keeper that this event loop is alive, and fences what was not renewed in time. */
  #beatOn(): void {
    if (this.#stopBeat) return
    this.#stopBeat = this.#session.clock.after(this.#leaseTtl / 3, () => {
      this.#stopBeat = null
      this.#keeper.beat()
      this.#fenceOverdue()
      if (this.#attempts.size > 0) this.#beatOn()
    })
  }

  /** The holder's own deadline: contact may be lost, and somebody else may have the task by now. */
  #fenceOverdue(): void {
    const now = this.#session.clock.mono()
    for (const attempt of this.#attempts.values()) {
      if (now - attempt.renewedAt > this.#leaseTtl) attempt.loseLease()
    }
  }

  #report(results: readonly KeeperReport[], renewedAt: number): void {
    for (const { token, renewed } of results) {
      const attempt = this.#attempts.get(token)
      if (attempt === undefined) continue
      if (renewed === 'lost') {
        this.#attempts.delete(token)
        attempt.loseLease()
        continue
      }
      attempt.renewedAt = renewedAt
      if (renewed === 'cancel') attempt.abort('cancelled')
    }
  }
}

const heldLease = (attempt: Attempt): HeldLease => ({ id: attempt.task.id, token: attempt.token, until: attempt.until, waiting: !attempt.isStarted })
