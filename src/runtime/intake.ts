/** When to look for work, where, and how much to take. Looking is the truth; wake-ups only make it sooner. */
import { type HoldfastError, isContactLost, isHoldfastError } from '../core/errors.ts'
import { release } from '../core/machine.ts'
import type { TaskRecord } from '../core/task.ts'
import type { Cancel } from './clock.ts'
import { look } from './look.ts'
import type { Queues } from './queues.ts'
import { newOp, type Session } from './session.ts'
import { settle } from './settle.ts'

export interface IntakeHost {
  readonly workerId: string
  readonly queues: readonly string[]
  readonly leaseTtl: number
  readonly pollInterval: number
  types(): readonly string[]
  /** How many tasks may be taken now, while looks under way may bring `asked`. */
  room(asked: number): number
  /** `askedAt` is monotonic: their leases began no earlier. */
  deliver(tasks: readonly TaskRecord[], askedAt: number): void
  /** Nothing was found anywhere in this round. */
  foundNothing(): void
  /** The store cannot be used any more. */
  broken(error: HoldfastError): void
}

interface QueueState {
  readonly name: string
  /** Monotonic: no look before then, unless woken. */
  restUntil: number
  /** Looks under way: a second one beside the first only while there is plenty. */
  looks: number
  isFull: boolean
  /** Counts wake-ups: one that comes during a look may be news to it. */
  wakes: number
  /** Monotonic: when a look last asked for what is overdue. */
  dueAskedAt: number
}

/** Errors after which looking again is pointless. */
const FATAL = ['STORE_IDENTITY_CHANGED', 'STORE_CORRUPT', 'SCHEMA_NEWER', 'STORE_CLOSED'] as const
/** Overdue tasks are looked for at most this often, however often tasks are claimed. */
const DUE_EVERY = 100
const PAUSES_EVERY = 2_000
/** From this age on nothing is claimed before pauses have been read again; before, looks do not wait for it. */
const PAUSES_LIFE = 4_000
const FIRST_WAIT = 100
/** How soon to look again for what is overdue but may not be moved yet. */
const LEFT_ALONE = 100
const LONGEST_WAIT = 5_000
/** Tasks that are read at once when it is unclear what this worker holds. */
const HELD_PAGE = 1_000

export class Intake {
  readonly #session: Session
  readonly #pauses: Queues
  readonly #host: IntakeHost
  readonly #states: QueueState[]
  #turn = 0
  #stopped = false
  #loops: readonly Promise<void>[] = []
  readonly #rings = new Set<() => void>()
  /** How many tasks the looks under way may bring. */
  #asked = 0
  #unsubscribe: Cancel = () => {}
  #pausesReadAt = Number.NEGATIVE_INFINITY
  #readingPauses: Promise<void> | null = null
  #lookedAt = Number.NEGATIVE_INFINITY
  #failures = 0
  /** Monotonic: unbroken contact since then. */
  #contactSince = Number.NEGATIVE_INFINITY
  /** Claims whose reply was lost: what they leased is held by nobody who knows it. */
  #unclear: string[] = []

  constructor(session: Session, pauses: Queues, host: IntakeHost) {
    this.#session = session
    this.#pauses = pauses
    this.#host = host
    this.#states = host.queues.map((name) => ({
      name,
      restUntil: 0,
      looks: 0,
      isFull: false,
      wakes: 0,
      dueAskedAt: Number.NEGATIVE_INFINITY,
    }))
  }

  start(): void {
    this.#unsubscribe = this.#session.store.wake((queues) => this.#wake(queues))
    this.#loops = Array.from({ length: this.#session.store.claimsAtOnce }, () => this.#run())
  }

  /** Resolves when no look is under way; what it found has been delivered. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#unsubscribe()
    this.nudge()
    await Promise.all(this.#loops)
  }

  /** There is room again. */
  nudge(): void {
    for (const ring of this.#rings) ring()
  }

  /** No queue is worth looking at before its time, and none is being looked at. */
  get isResting(): boolean {
    const now = this.#session.clock.mono()
    return this.#states.every(
      ({ name, restUntil, looks }) => looks === 0 && (restUntil > now || this.#pauses.isPaused(name)),
    )
  }

  #wake(queues: readonly string[] | null): void {
    for (const state of this.#states) {
      if (queues !== null && !queues.includes(state.name)) continue
      state.restUntil = 0
      state.wakes++
    }
    this.nudge()
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#readPauses()
        await this.#releaseUnclear()
        const limit = this.#host.room(this.#asked)
        const state = limit > 0 ? this.#nextQueue() : null
        if (state === null) {
          if (this.isResting) this.#host.foundNothing()
          if (limit <= 0) await this.#lookAfterOthers()
          await this.#rest(limit > 0 ? this.#untilNextLook() : PAUSES_EVERY)
        } else await this.#look(state, limit)
      } catch (error) {
        if (FATAL.some((code) => isHoldfastError(error, code))) return this.#host.broken(error as HoldfastError)
        await this.#backOff(error)
      }
    }
  }

  async #look(state: QueueState, limit: number): Promise<void> {
    const { clock, time } = this.#session
    const { workerId, leaseTtl, pollInterval } = this.#host
    const op = newOp()
    const { wakes } = state
    let isAnswered = false
    state.looks++
    this.#asked += limit
    try {
      const askedAt = clock.mono()
      const takeLeases = askedAt - this.#contactSince >= leaseTtl
      const withDue = askedAt - state.dueAskedAt >= DUE_EVERY
      if (withDue) state.dueAskedAt = askedAt
      this.#lookedAt = askedAt
      const deliver = (leased: readonly TaskRecord[]): void => {
        this.#asked -= limit
        isAnswered = true
        this.#host.deliver(leased, askedAt)
      }
      const want = { queue: state.name, types: this.#host.types(), limit, workerId, leaseTtl, op, takeLeases }
      const found = await look(this.#session, { ...want, withDue, deliver })
      this.#failures = 0
      state.isFull = found.leased.length === limit
      if (found.moreDue) state.dueAskedAt = Number.NEGATIVE_INFINITY
      if (state.wakes !== wakes) return
      if (state.isFull || found.moreDue) state.restUntil = 0
      else {
        const untilNext = found.next === null ? pollInterval : found.next - time.now()
        // What is overdue shows in the next instant too, also when it was not asked for, or is not ours to move yet.
        const untilDue = found.leased.length > 0 || withDue ? 0 : state.dueAskedAt + DUE_EVERY - askedAt
        const soonest = found.leftAlone > 0 ? LEFT_ALONE : untilDue
        state.restUntil = clock.mono() + Math.min(Math.max(soonest, untilNext), pollInterval)
      }
    } catch (error) {
      state.restUntil = 0
      if (!isAnswered) this.#asked -= limit
      if (!isAnswered && isContactLost(error)) this.#unclear.push(op)
      throw error
    } finally {
      state.looks--
    }
  }

  /** With no slot free nothing can be taken, but what a dead worker held and what has expired must not wait for one. */
  async #lookAfterOthers(): Promise<void> {
    const { workerId, leaseTtl } = this.#host
    const now = this.#session.clock.mono()
    if (this.#stopped || now - this.#lookedAt < PAUSES_EVERY) return
    this.#lookedAt = now
    const takeLeases = now - this.#contactSince >= leaseTtl
    for (const { name } of this.#states) {
      const want = { queue: name, types: this.#host.types(), limit: 0, workerId, leaseTtl, op: newOp(), takeLeases }
      while ((await look(this.#session, want)).moreDue && !this.#stopped);
    }
    this.#failures = 0
  }

  /** Round-robin over the queues that are worth a look. */
  #nextQueue(): QueueState | null {
    const now = this.#session.clock.mono()
    for (let i = 0; i < this.#states.length; i++) {
      const state = this.#states[(this.#turn + i) % this.#states.length]!
      if (state.restUntil > now || (state.looks > 0 && !state.isFull) || this.#pauses.isPaused(state.name)) continue
      this.#turn = (this.#turn + i + 1) % this.#states.length
      return state
    }
    return null
  }

  #untilNextLook(): number {
    const now = this.#session.clock.mono()
    const { pollInterval } = this.#host
    let soonest = Math.min(PAUSES_EVERY, pollInterval)
    for (const { name, restUntil, looks } of this.#states) {
      if (looks === 0 && !this.#pauses.isPaused(name)) soonest = Math.min(soonest, restUntil - now)
    }
    return Math.max(0, soonest)
  }

  #rest(delay: number): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    return new Promise((done) => {
      const ring = (): void => {
        cancel()
        this.#rings.delete(ring)
        done()
      }
      const cancel = this.#session.clock.after(delay, ring)
      this.#rings.add(ring)
    })
  }

  /** Waits for it only where pauses may have changed long ago: a look that begins a moment later sees them. */
  async #readPauses(): Promise<void> {
    const age = this.#session.clock.mono() - this.#pausesReadAt
    if (age < PAUSES_EVERY) return
    this.#readingPauses ??= this.#readPausesNow().finally(() => {
      this.#readingPauses = null
    })
    if (age >= PAUSES_LIFE) await this.#readingPauses
    else this.#readingPauses.catch(() => {})
  }

  async #readPausesNow(): Promise<void> {
    const begun = this.#session.clock.mono()
    if (this.#session.time.isOld) await this.#session.time.anchor()
    await this.#pauses.refresh()
    this.#pausesReadAt = begun
  }

  /** Finds and releases what this worker holds without knowing it. */
  async #releaseUnclear(): Promise<void> {
    if (this.#unclear.length === 0) return
    const unclear = [...this.#unclear]
    for (let page = await this.#held(); page.length > 0; page = await this.#held(page.at(-1)!.id)) {
      for (const task of page) {
        const token = task.lease?.token
        if (token !== undefined && unclear.some((op) => token.startsWith(`${op}.`))) await this.#giveBack(task, token)
      }
    }
    this.#unclear = this.#unclear.filter((op) => !unclear.includes(op))
  }

  #held(after?: string): Promise<readonly TaskRecord[]> {
    const page = { order: 'oldest', limit: HELD_PAGE, now: null, ...(after === undefined ? null : { after }) } as const
    return this.#session.store.list({ workerId: this.#host.workerId }, page)
  }

  async #giveBack(task: TaskRecord, token: string): Promise<void> {
    const { time } = this.#session
    try {
      await settle(this.#session, task, {
        op: token,
        moves: ['release'],
        decide: (fresh) => release(fresh, { token }, time.now()),
      })
    } catch (error) {
      if (isContactLost(error)) throw error
    }
  }

  async #backOff(error: unknown): Promise<void> {
    const { clock, random, logger } = this.#session
    if (this.#failures++ === 0)
      logger.warn(`cannot look for work: ${error instanceof Error ? error.message : String(error)}; trying again`)
    const wait = random() * Math.min(FIRST_WAIT * 2 ** this.#failures, LONGEST_WAIT)
    await this.#rest(wait)
    this.#contactSince = clock.mono()
  }
}
