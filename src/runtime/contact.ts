/**
 * Tracks since when this process has had unbroken contact with its store. A process may take a lapsed lease only after one lease length
 * of contact: after an interruption, live workers need that long to renew their leases, and until then they look dead. What counts as a break
 * depends on the lease: four seconds of silence say nothing about a lease of a minute.
 */
import { mayPass } from '../core/errors.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from './clock.ts'

/** A call that took longer than this share of a lease was held up, and so may have been its holder's renewals. */
const LONG_CALL = 1 / 3
/** After a silence longer than this share of a lease it is unknown what happened meanwhile: this process may have been stopped, like the holder. */
const LONG_SILENCE = 1
/** What is no break for a lease of this length is none at all: an idle worker looks ten times a second, and must be able to take the shortest leases. */
const SHORTEST_LEASE = 500

/** A store takes no lease when the write has waited for a lock this long. */
const HELD_UP = 1_000

interface Break {
  /** Monotonic: when contact began again. */
  readonly at: number
  /** It was a break for leases shorter than this; longer ones outlast it. */
  readonly upTo: number
}

export class Contact {
  readonly #clock: Clock
  /** Each concerns longer leases than those after it. */
  #breaks: readonly Break[]
  #lastAt: number
  /** Contact was lost. It begins again with the next answer, not with the next try. */
  #isLost = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.#lastAt = clock.mono()
    this.#breaks = [{ at: this.#lastAt, upTo: Number.POSITIVE_INFINITY }]
  }

  /** Leases of this length have had time to be renewed. */
  hasLasted(length: number): boolean {
    if (this.#isLost) return false
    const now = this.#clock.mono()
    return !this.#breaks.some(({ at, upTo }) => upTo > length && now - at < length)
  }

  /** Reports that a timer set at `since` for `delay` has fired. If it fired much too late, this process was suspended. */
  woke(since: number, delay: number): void {
    this.#passed(this.#clock.mono() - since - delay, LONG_CALL)
  }

  /** Leases were to be taken, and none was. Where that took so long that the store had refused it as late, all writes were held up. */
  tookNone(since: number): void {
    if (this.#clock.mono() - since > HELD_UP) this.#broken(Number.POSITIVE_INFINITY)
  }

  /** Makes a call to the store and records whether contact held. */
  async watch<T>(call: () => Promise<T>): Promise<T> {
    const begun = this.#clock.mono()
    this.#passed(begun - this.#lastAt, LONG_SILENCE)
    try {
      const answer = await call()
      this.#answered(begun)
      return answer
    } catch (error) {
      // A refusal proves contact. But if writes fail for now, other processes could not renew either.
      if (mayPass(error)) this.#isLost = true
      else this.#answered(begun)
      throw error
    }
  }

  #answered(begun: number): void {
    this.#lastAt = this.#clock.mono()
    if (this.#isLost) this.#broken(Number.POSITIVE_INFINITY)
    else this.#passed(this.#lastAt - begun, LONG_CALL)
    this.#isLost = false
  }

  /** `time` has passed without a word from the store: a break for leases of which it is more than this share. */
  #passed(time: number, share: number): void {
    if (time > SHORTEST_LEASE * share) this.#broken(time / share)
  }

  /** Contact begins again now. */
  #broken(upTo: number): void {
    const at = this.#clock.mono()
    const stillCount = this.#breaks.filter((earlier) => earlier.upTo > upTo && at - earlier.at < earlier.upTo)
    this.#breaks = [...stillCount, { at, upTo }]
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
  ...(store.waitingGroups && { waitingGroups: (request) => contact.watch(() => store.waitingGroups!(request)) }),
  ...(store.countQueues && { countQueues: (names, cap, now) => store.countQueues!(names, cap, now) }),
  ...(store.detachedKeys && { detachedKeys: store.detachedKeys }),
  ...(store.visibleUntil && { visibleUntil: () => store.visibleUntil!() }),
  ...(store.examine && { examine: () => store.examine!() }),
  ...(store.repairClock && { repairClock: () => store.repairClock!() }),
  ...(store.acceptRestore && { acceptRestore: () => store.acceptRestore!() }),
  ...(store.keeper && { keeper: (options) => store.keeper!(options) }),
})
