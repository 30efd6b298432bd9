/**
 * Tracks since when this process has had unbroken contact with its store. A process may take a lapsed lease only after one lease length
 * of contact: after an interruption, live workers need that long to renew their leases, and until then they look dead. What counts as a break
 * depends on the lease: four seconds of silence say nothing about a lease of a minute.
 */
import { isConflict, mayPass } from '../core/errors.ts'
import type { Store } from '../store/store.ts'
import type { Cancel, Clock } from './clock.ts'

/** A call that took longer than this share of a lease was delayed, so the renewals of that lease may have been delayed too. */
const LONG_CALL = 1 / 3
/** After a silence longer than this share of a lease, this process and the holder of the lease may both have been suspended. */
const LONG_SILENCE = 1
/** Interruptions too short to matter for a lease of this length are ignored: an idle worker looks ten times a second, and must be able to take the shortest leases. */
const SHORTEST_LEASE = 500

/** A store takes no lease when the write has waited for a lock this long. */
const HELD_UP = 1_000

/** The shortest time between two beats of a pulse. */
const BEAT = 150
/** The next beat comes after this share of the silence so far: a long silence concerns only long leases, so beats may be rarer. */
const BEATS = 1 / 4

/** A timer that is late by as long as this process was suspended. */
interface Pulse {
  readonly since: number
  readonly delay: number
  /** Processor time used until then: a process that computed was not suspended. */
  readonly used: number
  readonly cancel: Cancel
}

interface Break {
  /** Monotonic: when contact began again. */
  readonly at: number
  /** The break counts only for leases shorter than this. */
  readonly upTo: number
}

export class Contact {
  readonly #clock: Clock
  /** Each concerns longer leases than those after it. */
  #breaks: readonly Break[]
  #lastAt: number
  /** Contact was lost. It begins again with the next reply, not with the next attempt. */
  #isLost = false
  #pulse: Pulse | null = null

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

  /** Notices from now on when this process is suspended between two calls. Workers notice it by the timers between their looks. */
  noticeSuspension(): void {
    this.#pulse?.cancel()
    this.#beat(BEAT, this.#clock.mono())
  }

  close(): void {
    this.#pulse?.cancel()
    this.#pulse = null
  }

  #beat(delay: number, begun: number): void {
    const since = this.#clock.mono()
    const tick = (): void => {
      this.#checkPulse()
      this.#beat(Math.max(BEAT, (this.#clock.mono() - begun) * BEATS), begun)
    }
    this.#pulse = { since, delay, used: this.#processorTime, cancel: this.#clock.after(delay, tick, true) }
  }

  #checkPulse(): void {
    if (this.#pulse === null) return
    const { since, delay, used } = this.#pulse
    this.#passed(this.#clock.mono() - since - delay - (this.#processorTime - used), LONG_CALL)
  }

  get #processorTime(): number {
    return this.#clock.processorTime?.() ?? 0
  }

  /** A commit that should have taken lapsed leases took none. If it took so long that the store refused it as late, all writes were delayed. */
  tookNone(since: number): void {
    if (this.#clock.mono() - since > HELD_UP) this.#broken(Number.POSITIVE_INFINITY)
  }

  /** Makes a call to the store and records whether contact held. */
  async watch<T>(call: () => Promise<T>): Promise<T> {
    const begun = this.#clock.mono()
    this.#passed(begun - this.#lastAt, LONG_SILENCE)
    // The caller's timer may come before the pulse when a process goes on.
    this.#checkPulse()
    try {
      const answer = await call()
      this.#answered(begun)
      return answer
    } catch (error) {
      if (isLoss(error)) this.#isLost = true
      else this.#answered(begun)
      throw error
    }
  }

  /** For a call that may rightly take long: only a loss of contact is recorded. The answer is passed on as it is. */
  notice<T>(answer: Promise<T>): Promise<T> {
    answer.catch((error: unknown) => {
      if (isLoss(error)) this.#isLost = true
    })
    return answer
  }

  #answered(begun: number): void {
    this.#lastAt = this.#clock.mono()
    if (this.#isLost) this.#broken(Number.POSITIVE_INFINITY)
    else this.#passed(this.#lastAt - begun, LONG_CALL)
    this.#isLost = false
  }

  /** The store was silent for `time`: a break for every lease of which this is more than `share`. */
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

/** A refusal proves contact. But if writes fail for now, other processes could not renew either. */
const isLoss = (error: unknown): boolean => mayPass(error) && !isConflict(error)

/**
 * Wraps a store so that its calls are watched. Of documents, inserts and lists only failures count: what is asked before a claim fails first
 * in an outage, and a claim that follows soon after it would seem to come after unbroken contact. What is in a caller's transaction is not watched.
 */
export const watched = (store: Store, contact: Contact): Store => ({
  capabilities: store.capabilities,
  address: store.address,
  leaseTtl: store.leaseTtl,
  claimsAtOnce: store.claimsAtOnce,
  documents: {
    get: (name) => contact.notice(store.documents.get(name)),
    put: (name, value, version) => contact.notice(store.documents.put(name, value, version)),
    list: (prefix) => contact.notice(store.documents.list(prefix)),
    delete: (name, version) => contact.notice(store.documents.delete(name, version)),
  },
  now: () => contact.watch(() => store.now()),
  insert: (insertions, options) => contact.notice(store.insert(insertions, options)),
  claim: (want) => contact.watch(() => store.claim(want)),
  commit: (changes) => contact.watch(() => store.commit(changes)),
  renew: (renewals, now) => contact.watch(() => store.renew(renewals, now)),
  remove: (removals) => contact.watch(() => store.remove(removals)),
  get: (ids) => contact.watch(() => store.get(ids)),
  find: (key) => contact.watch(() => store.find(key)),
  list: (query, page) => contact.notice(store.list(query, page)),
  count: (query, limits) => contact.notice(store.count(query, limits)),
  wake: (listener) => store.wake(listener),
  close: () => store.close(),
  ...(store.isCongested && { isCongested: () => store.isCongested!() }),
  ...(store.join && { join: (tx) => store.join!(tx) }),
  ...(store.waitingGroups && { waitingGroups: (request) => contact.watch(() => store.waitingGroups!(request)) }),
  ...(store.countQueues && { countQueues: (names, cap, now) => store.countQueues!(names, cap, now) }),
  ...(store.detachedKeys && { detachedKeys: store.detachedKeys }),
  ...(store.visibleUntil && { visibleUntil: () => store.visibleUntil!() }),
  ...(store.examine && { examine: () => store.examine!() }),
  ...(store.repairClock && { repairClock: () => store.repairClock!() }),
  ...(store.acceptRestore && { acceptRestore: () => store.acceptRestore!() }),
  ...(store.keeper && { keeper: (options) => store.keeper!(options) }),
})
