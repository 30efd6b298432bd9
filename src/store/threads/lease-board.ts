/**
 * What a worker's event loop and its keeper's thread both see of the held leases, in shared memory: starting and ending a
 * task costs no message. A lease has a slot; the keeper learns its id and token once, when it is held.
 */

const FREE = 0
const WAITING = 1
const STARTED = 2
/** Its handler has settled, and the end is not written yet. */
const SETTLED = 3
/** The keeper returns it to the queue: it must not be started any more. */
const GIVEN_BACK = 4

const HEADER = 1 // the first of the times: when the event loop last showed that it is alive
/** How many claims at once can be followed. */
const CLAIMS = 8
const MOST_TICKETS = 2 ** 27
/** How long an event loop may be still with the end of a run in hand before that run is let go. */
const SETTLED_STALL = 60_000

export class LeaseBoard {
  /** Hand it to the thread; `new LeaseBoard(memory)` there sees the same. */
  readonly memory: SharedArrayBuffer
  readonly #states: Int32Array
  /** Claims whose reply the event loop has not seen yet: 0, a ticket, or the negative of one that the keeper has given back. */
  readonly #claims: Int32Array
  readonly #times: Float64Array
  #tickets = 0

  constructor(memory: SharedArrayBuffer) {
    const slots = (memory.byteLength - HEADER * 8 - CLAIMS * 4) / 12
    this.memory = memory
    this.#times = new Float64Array(memory, 0, slots + HEADER)
    this.#states = new Int32Array(memory, (slots + HEADER) * 8, slots)
    this.#claims = new Int32Array(memory, (slots + HEADER) * 8 + slots * 4, CLAIMS)
  }

  static withSlots(slots: number): LeaseBoard {
    return new LeaseBoard(new SharedArrayBuffer(slots * 12 + HEADER * 8 + CLAIMS * 4))
  }

  get slots(): number {
    return this.#states.length
  }

  // ── the event loop's side ────────────────────────────────────────────────────────────────────────────────────

  wait(slot: number): void {
    Atomics.store(this.#states, slot, WAITING)
  }

  /** `until`, monotonic: not to be kept from then on. null: as long as the process lives. False: the keeper has given it back. */
  start(slot: number, until: number | null): boolean {
    this.#times[slot + HEADER] = until ?? Number.POSITIVE_INFINITY
    return Atomics.compareExchange(this.#states, slot, WAITING, STARTED) !== GIVEN_BACK
  }

  /** Kept from now on while this event loop shows that it is alive, also past its timeout: the run ended in time. */
  settle(slot: number): void {
    Atomics.compareExchange(this.#states, slot, STARTED, SETTLED)
  }

  free(slot: number): void {
    Atomics.store(this.#states, slot, FREE)
  }

  beat(now: number): void {
    this.#times[0] = now
  }

  /** The ticket of a claim that is about to be sent; null: too many are under way. */
  beginClaim(): number | null {
    const cell = this.#claims.indexOf(0)
    if (cell < 0) return null
    this.#tickets = (this.#tickets + 1) % MOST_TICKETS
    const ticket = (this.#tickets + 1) * CLAIMS + cell
    Atomics.store(this.#claims, cell, ticket)
    return ticket
  }

  /** Its reply has been seen. False: the keeper has given back what it leased. */
  endClaim(ticket: number): boolean {
    return Atomics.exchange(this.#claims, ticket % CLAIMS, 0) === ticket
  }

  // ── the keeper's side ────────────────────────────────────────────────────────────────────────────────────────

  isFree(slot: number): boolean {
    return Atomics.load(this.#states, slot) === FREE
  }

  isWaiting(slot: number): boolean {
    return Atomics.load(this.#states, slot) === WAITING
  }

  /** How long the event loop has been still, as far as is known at `now` by one who has watched since `since`. */
  stillFor(now: number, since: number): number {
    return now - Math.max(this.#times[0]!, since)
  }

  /** A run past its timeout is not kept; nor is what waits behind an event loop that has been still for `stall`. */
  mayKeep(slot: number, now: number, stall: number): boolean {
    const state = Atomics.load(this.#states, slot)
    if (state === WAITING) return now - this.#times[0]! < stall
    if (state === SETTLED) return now - this.#times[0]! < SETTLED_STALL
    return state === STARTED && now < this.#times[slot + HEADER]!
  }

  /** False: it has been started, or has ended. */
  giveBack(slot: number): boolean {
    return Atomics.compareExchange(this.#states, slot, WAITING, GIVEN_BACK) === WAITING
  }

  isClaiming(ticket: number): boolean {
    return Atomics.load(this.#claims, ticket % CLAIMS) === ticket
  }

  /** False: the event loop has seen the reply. */
  giveBackClaim(ticket: number): boolean {
    return Atomics.compareExchange(this.#claims, ticket % CLAIMS, ticket, -ticket) === ticket
  }
}
