/** Permits of a rate. Each rate is a document of what was reserved and what began; a process reserves permits in it before it claims. */
import { createHash } from 'node:crypto'
import {
  NO_STARTS,
  overAt,
  type RateInForce,
  type RateState,
  type Reservation,
  reserve,
  SPREAD,
  settle,
} from '../../core/flow/rate.ts'
import { RATE } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import { newOp, type Session } from '../session.ts'

export interface Permits {
  readonly count: number
  readonly notAfter: Instant
  /** When there will be another permit. */
  readonly next: Instant
  /** Called when the claim has ended, with the instants at which its tasks began. Returns when there will be another permit; null: the claim did not need all it had. */
  settle(begun: readonly Instant[]): Promise<Instant | null>
}

/** How often a write is tried. Other processes may be faster several times; then the next look continues. */
const TRIES = 8
/** The fastest of this many writes estimates the next one. */
const WRITES = 4
/** How soon to look again after the last try. */
const CONTENDED = 20
/** How often to delete what is over. */
const SWEEP_EVERY = 10_000
const SWEPT_AT_ONCE = 20

const GROUPS = `${RATE}group/`

export const queueRate = (queue: string): string => `${RATE}queue/${queue}`

/** A group may be any text, also one that is too long for a key. */
export const groupRate = (queue: string, group: string): string =>
  `${GROUPS}${createHash('sha256').update(`${queue}\n${group}`).digest('base64url')}`

interface Known {
  readonly state: RateState
  readonly version: number
  /** When the document may be deleted; null: this process has not written it. */
  readonly overAt: Instant | null
}

/** A claim that has ended, which the store may not know yet. */
interface Ended {
  readonly id: string
  readonly begun: readonly Instant[]
}

export class PermitBook {
  readonly #session: Session
  /** As last read or written here, by name. */
  readonly #known = new Map<string, Known>()
  readonly #ended = new Map<string, readonly Ended[]>()
  /** How long the last reservations took to be written. */
  #writes: readonly number[] = []
  /** Monotonic. */
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(session: Session) {
    this.#session = session
  }

  async reserve(name: string, wanted: number, inForce: RateInForce): Promise<Permits> {
    const { time, clock } = this.#session
    const id = newOp()
    if (clock.mono() - this.#sweptAt >= SWEEP_EVERY) void this.#sweep()
    let known = this.#known.get(name)
    let isFresh = known === undefined
    known ??= await this.#read(name)
    for (let tries = 0; tries < TRIES; tries++) {
      const ended = this.#ended.get(name) ?? []
      // Permits for when the claim can begin: those of now would count for as long as this is being written.
      const lead = this.#lead
      const begins = time.now() + lead
      const reserved = reserve(settled(known, ended, inForce), begins, { id, wanted }, inForce)
      const { permits, state, notAfter } = reserved
      const next = reserved.next - lead
      if (permits > 0) {
        const asked = clock.mono()
        const isWritten = await this.#put(name, state, known, ended, inForce)
        this.#writes = [clock.mono() - asked, ...this.#writes].slice(0, WRITES)
        await this.#until(begins)
        if (isWritten)
          return {
            count: permits,
            notAfter,
            next,
            settle: (begun) => this.#settle(name, { id, begun }, reserved, inForce),
          }
      } else if (isFresh) return { count: 0, notAfter, next, settle: async () => next }
      // Others may have given permits back.
      known = await this.#read(name)
      isFresh = true
    }
    const next = time.now() + CONTENDED
    return { count: 0, notAfter: next, next, settle: async () => next }
  }

  /** The least time that a reservation takes, as far as is known. */
  get #lead(): number {
    return this.#writes.length < WRITES ? 0 : Math.min(SPREAD, Math.floor(Math.min(...this.#writes)))
  }

  async #until(begins: Instant): Promise<void> {
    const { time, clock } = this.#session
    for (let left = begins - time.now(); left > 0 && left <= SPREAD; left = begins - time.now())
      await new Promise<void>((done) => clock.after(left, done))
  }

  /** When there will be a permit; null: now. */
  async nextPermit(name: string, inForce: RateInForce): Promise<Instant | null> {
    const { state } = await this.#read(name)
    const { permits, next } = reserve(state, this.#session.time.now(), { id: '', wanted: 1 }, inForce)
    return permits > 0 ? null : next
  }

  async #settle(
    name: string,
    one: Ended,
    { permits, notAfter }: Reservation,
    inForce: RateInForce,
  ): Promise<Instant | null> {
    const { time } = this.#session
    this.#ended.set(name, [...(this.#ended.get(name) ?? []), one])
    // Otherwise other processes count them as used at their last valid instant. With a long window that makes little difference, and the next
    // reservation writes it anyway.
    if (one.begun.length < permits || inForce.validity > inForce.rate.per / 50) await this.#tell(name, inForce)
    // The claim may have been too late for waiting tasks.
    if (one.begun.length < permits && time.now() <= notAfter) return null
    const known = this.#known.get(name)
    const state = known === undefined ? NO_STARTS : settled(known, this.#ended.get(name) ?? [], inForce)
    const lead = this.#lead
    return reserve(state, time.now() + lead, { id: one.id, wanted: 0 }, inForce).next - lead
  }

  /** Never rejects: permits whose use is not recorded count as used at their last valid instant. */
  async #tell(name: string, inForce: RateInForce): Promise<void> {
    try {
      for (let tries = 0; tries < TRIES; tries++) {
        const known = (tries === 0 ? this.#known.get(name) : undefined) ?? (await this.#read(name))
        const ended = this.#ended.get(name) ?? []
        if (ended.length === 0 || (await this.#put(name, settled(known, ended, inForce), known, ended, inForce))) return
      }
    } catch {
      this.#known.delete(name)
    }
  }

  /** Returns false if another process was faster. */
  async #put(
    name: string,
    state: RateState,
    { version }: Known,
    told: readonly Ended[],
    inForce: RateInForce,
  ): Promise<boolean> {
    const written = await this.#session.store.documents.put(name, JSON.stringify(state), version)
    if (written === null) return false
    const left = (this.#ended.get(name) ?? []).filter((one) => !told.includes(one))
    if (left.length === 0) this.#ended.delete(name)
    else this.#ended.set(name, left)
    this.#remember(name, { state, version: written, overAt: overAt(state, inForce) })
    return true
  }

  async #read(name: string): Promise<Known> {
    const document = await this.#session.store.documents.get(name)
    const state = document === null ? NO_STARTS : stateIn(document.value)
    const known = { state, version: document?.version ?? 0, overAt: null }
    this.#remember(name, known)
    return known
  }

  /** Of groups: there may be as many as a user has customers. What another process has written since is left to it. Never rejects. */
  async #sweep(): Promise<void> {
    const { clock, time, store } = this.#session
    this.#sweptAt = clock.mono()
    const now = time.now()
    const over = [...this.#known].filter(
      ([name, known]) => name.startsWith(GROUPS) && known.overAt !== null && known.overAt < now,
    )
    try {
      for (let at = 0; at < over.length; at += SWEPT_AT_ONCE)
        await Promise.all(
          over.slice(at, at + SWEPT_AT_ONCE).map(async ([name, known]) => {
            // It may have been used since.
            if (this.#known.get(name) !== known) return
            this.#known.delete(name)
            this.#ended.delete(name)
            await store.documents.delete(name, known.version)
          }),
        )
    } catch {
      // They are not found again: that costs no more than their space.
    }
  }

  #remember(name: string, known: Known): void {
    this.#known.delete(name)
    this.#known.set(name, known)
    if (this.#known.size <= MOST_KNOWN) return
    const oldest = this.#known.keys().next().value!
    this.#known.delete(oldest)
    this.#ended.delete(oldest)
  }
}

const settled = ({ state }: Known, ended: readonly Ended[], inForce: RateInForce): RateState =>
  ended.reduce((before, one) => settle(before, one, inForce), state)

const MOST_KNOWN = 10_000

const stateIn = (value: string): RateState => {
  try {
    const { free, starts, held } = JSON.parse(value) as Partial<RateState>
    return {
      free: typeof free === 'number' && Number.isFinite(free) ? free : null,
      starts: Array.isArray(starts) ? starts : [],
      held: Array.isArray(held) ? held : [],
    }
  } catch {
    return NO_STARTS
  }
}
