/**
 * Tracks since when this process has had unbroken contact with its store. A process may take a lapsed lease only after one lease length
 * of contact: after an interruption, live workers need that long to renew their leases, and until then they look dead.
 */
import { mayPass } from '../core/errors.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from './clock.ts'

export class Contact {
  readonly #clock: Clock
  /** A call that took longer than this was delayed, and the renewals of other workers may have been delayed too. */
  readonly #patience: number
  /** After this long without a call, contact in between is unknown. */
  readonly #longestGap: number
  #since: number
  #lastAt: number

  constructor(clock: Clock, leaseTtl: number) {
    this.#clock = clock
    this.#patience = leaseTtl / 3
    this.#longestGap = leaseTtl
    this.#since = clock.mono()
    this.#lastAt = this.#since
  }

  /** Contact was lost, or this process was suspended: contact counts from now. */
  broken(): void {
    this.#since = this.#clock.mono()
  }

  hasLasted(length: number): boolean {
    return this.#clock.mono() - this.#since >= length
  }

  /** Reports that a timer set at `since` for `delay` has fired. If it fired much too late, this process was suspended. */
  woke(since: number, delay: number): void {
    if (this.#clock.mono() - since > delay + this.#patience) this.broken()
  }

  /** Makes a call to the store and records whether contact held. */
  async watch<T>(call: () => Promise<T>): Promise<T> {
    const begun = this.#clock.mono()
    if (begun - this.#lastAt > this.#longestGap) this.broken()
    try {
      const answer = await call()
      this.#lastAt = this.#clock.mono()
      if (this.#lastAt - begun > this.#patience) this.broken()
      return answer
    } catch (error) {
      // A refusal proves contact. But if writes fail for now, other processes could not renew either.
      if (mayPass(error)) this.broken()
      else this.#lastAt = this.#clock.mono()
      throw error
    }
  }
}

/** Wraps a store so that its calls are watched. Inserts are not: inside a caller's transaction they must run synchronously. */
export const watched = (store: Store, contact: Contact): Store => ({
  capabilities: store.capabilities,
  address: store.address,
  leaseTtl: store.leaseTtl,
  claimsAtOnce: store.claimsAtOnce,
  documents: store.documents,
  now: () => contact.watch(() => store.now()),
  insert: (insertions, options) => store.insert(insertions, options),
  claim: (want) => contact.watch(() => store.claim(want)),
  commit: (changes) => contact.watch(() => store.commit(changes)),
  renew: (renewals, now) => contact.watch(() => store.renew(renewals, now)),
  remove: (removals) => contact.watch(() => store.remove(removals)),
  get: (ids) => contact.watch(() => store.get(ids)),
  find: (key) => contact.watch(() => store.find(key)),
  list: (query, page) => store.list(query, page),
  count: (query, limits) => store.count(query, limits),
  wake: (listener) => store.wake(listener),
  close: () => store.close(),
  ...(store.countQueues && { countQueues: (names, cap, now) => store.countQueues!(names, cap, now) }),
  ...(store.detachedKeys && { detachedKeys: store.detachedKeys }),
  ...(store.visibleUntil && { visibleUntil: () => store.visibleUntil!() }),
  ...(store.examine && { examine: () => store.examine!() }),
  ...(store.repairClock && { repairClock: () => store.repairClock!() }),
  ...(store.acceptRestore && { acceptRestore: () => store.acceptRestore!() }),
  ...(store.keeper && { keeper: (options) => store.keeper!(options) }),
})
