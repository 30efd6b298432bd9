/**
 * What a worker's event loop and its keeper's thread both see of the held leases, in shared memory: starting and ending a
 * task costs no message. A lease has a slot; the keeper learns its id and token once, when it is held.
 */

const FREE = 0
const WAITING = 1
const STARTED = 2

const HEADER = 1 // the first of the times: when the event loop last showed that it is alive

export class LeaseBoard {
  /** Hand it to the thread; `new LeaseBoard(memory)` there sees the same. */
  readonly memory: SharedArrayBuffer
  readonly #states: Int32Array
  readonly #times: Float64Array

  constructor(memory: SharedArrayBuffer) {
    const slots = memory.byteLength / 12 - HEADER
    this.memory = memory
    this.#times = new Float64Array(memory, 0, slots + HEADER)
    this.#states = new Int32Array(memory, (slots + HEADER) * 8, slots)
  }

  static withSlots(slots: number): LeaseBoard {
    return new LeaseBoard(new SharedArrayBuffer((slots + HEADER) * 12))
  }

  get slots(): number {
    return this.#states.length
  }

  // ── the event loop's side ────────────────────────────────────────────────────────────────────────────────────

  wait(slot: number): void {
    Atomics.store(this.#states, slot, WAITING)
  }

  /** `until`, monotonic: not to be kept from then on. null: as long as the process lives. */
  start(slot: number, until: number | null): void {
    this.#times[slot + HEADER] = until ?? Number.POSITIVE_INFINITY
    Atomics.store(this.#states, slot, STARTED)
  }

  free(slot: number): void {
    Atomics.store(this.#states, slot, FREE)
  }

  beat(now: number): void {
    this.#times[0] = now
  }

  // ── the keeper's side ────────────────────────────────────────────────────────────────────────────────────────

  isFree(slot: number): boolean {
    return Atomics.load(this.#states, slot) === FREE
  }

  /** A run past its timeout is not kept; nor is what waits behind an event loop that has been still for `stall`. */
  mayKeep(slot: number, now: number, stall: number): boolean {
    if (Atomics.load(this.#states, slot) === WAITING) return now - this.#times[0]! < stall
    return now < this.#times[slot + HEADER]!
  }
}
