/**
 * Since when this process has had unbroken contact with its store. A process that takes a lapsed lease must have had contact for one lease length:
 * after an interruption living workers need that long to renew their leases, and until then they look like dead ones.
 */
import { mayPass } from '../core/errors.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from './clock.ts'

export class Contact {
  readonly #clock: Clock
  /** A call that took longer was held up, and so may have been the renewals of others. */
  readonly #patience: number
  /** After a silence this long it is unknown what happened in between. */
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

  /** Contact was lost, or this process stood still: it begins again now. */
  broken(): void {
    this.#since = this.#clock.mono()
  }

  hasLasted(length: number): boolean {
    return this.#clock.mono() - this.#since >= length
  }

  /** A timer that was set for `delay` at `since` has fired. Much later means that this process was stopped meanwhile. */
  woke(since: number, delay: number): void {
    if (this.#clock.mono() - since > delay + this.#patience) this.broken()
  }

  /** Makes a call to the store, and watches how it goes. */
  async watch<T>(call: () => Promise<T>): Promise<T> {
    const begun = this.#clock.mono()
    if (begun - this.#lastAt > this.#longestGap) this.broken()
    try {
      const answer = await call()
      this.#lastAt = this.#clock.mono()
      if (this.#lastAt - begun > this.#patience) this.broken()
      return answer
    } catch (error) {
      // A refusal is an answer. But where nothing can be written, other processes could not renew either.
      if (mayPass(error)) this.broken()
      else this.#lastAt = this.#clock.mono()
      throw error
    }
  }
}

/** The same store, its calls watched. Inserts are not: in a caller's transaction they must take effect at once. */
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
