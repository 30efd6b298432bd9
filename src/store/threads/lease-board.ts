/**
 * The state of held leases in memory shared by a worker's event loop and its keeper's thread, so that starting and ending a task
 * costs no message. Each lease has a slot; the keeper receives its id and token once, when it is held.
 */

const FREE = 0
const WAITING = 1
const STARTED = 2
/** The handler has settled, and the end is not written yet. */
const SETTLED = 3
/** The keeper is returning it to the queue: it must no longer be started. */
const GIVEN_BACK = 4

const HEADER = 1 // the first time value: when the event loop last showed that it is alive
/** How many claims can be tracked at once. */
const CLAIMS = 8
const MOST_TICKETS = 2 ** 27
/** How long the lease of a settled run is renewed while the event loop is blocked. */
const SETTLED_STALL = 60_000

export class LeaseBoard {
  /** Pass it to the thread: `new LeaseBoard(memory)` there sees the same state. */
  readonly memory: SharedArrayBuffer
  readonly #states: Int32Array
  /** Claims whose reply the event loop has not seen yet: 0 for none, a ticket, or a negative ticket if the keeper has given the claim back. */
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

  /** `until` (monotonic) is when the keeper stops renewing; null means never. Returns false if the keeper has given the lease back. */
  start(slot: number, until: number | null): boolean {
    this.#times[slot + HEADER] = until ?? Number.POSITIVE_INFINITY
    return Atomics.compareExchange(this.#states, slot, WAITING, STARTED) !== GIVEN_BACK
  }

  /** The run ended in time: from now on its lease is renewed while this event loop is alive, even past the timeout. */
  settle(slot: number): void {
    Atomics.compareExchange(this.#states, slot, STARTED, SETTLED)
  }

  free(slot: number): void {
    Atomics.store(this.#states, slot, FREE)
  }

  beat(now: number): void {
    this.#times[0] = now
  }

  /** Returns a ticket for a claim that is about to be sent; null if too many are in flight. */
  beginClaim(): number | null {
    const cell = this.#claims.indexOf(0)
    if (cell < 0) return null
    this.#tickets = (this.#tickets + 1) % MOST_TICKETS
    const ticket = (this.#tickets + 1) * CLAIMS + cell
    Atomics.store(this.#claims, cell, ticket)
    return ticket
  }

  /** The reply has been seen. Returns false if the keeper has given the leases back. */
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

  /** How long the event loop has been blocked at `now`, as observed since `since`. */
  stillFor(now: number, since: number): number {
    return now - Math.max(this.#times[0]!, since)
  }

  /** False for a run past its timeout, and for a waiting task once the event loop has been blocked for `stall`. */
  mayKeep(slot: number, now: number, stall: number): boolean {
    const state = Atomics.load(this.#states, slot)
    if (state === WAITING) return now - this.#times[0]! < stall
    if (state === SETTLED) return now - this.#times[0]! < SETTLED_STALL
    return state === STARTED && now < this.#times[slot + HEADER]!
  }

  /** Returns false if it has been started or has ended. */
  giveBack(slot: number): boolean {
    return Atomics.compareExchange(this.#states, slot, WAITING, GIVEN_BACK) === WAITING
  }

  isClaiming(ticket: number): boolean {
    return Atomics.load(this.#claims, ticket % CLAIMS) === ticket
  }

  /** Returns false if the event loop has seen the reply. */
  giveBackClaim(ticket: number): boolean {
    return Atomics.compareExchange(this.#claims, ticket % CLAIMS, ticket, -ticket) === ticket
  }
}
