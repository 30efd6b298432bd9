/** Decides when to look for work, in which queue, and how much to claim. Correctness rests on polling; wake-ups only make it faster. */
import { type HoldfastError, isContactLost, isHoldfastError } from '../../../core/errors.ts'
import { groupOf } from '../../../core/flow/group-turns.ts'
import { bindsFetchingAhead } from '../../../core/flow/limits.ts'
import { release } from '../../../core/machine.ts'
import type { TaskRecord } from '../../../core/task.ts'
import type { Cancel } from '../../clock.ts'
import { sweep } from '../../queues/look.ts'
import type { Queues } from '../../queues/queues.ts'
import { newOp, type Session } from '../../session.ts'
import { settle } from '../../tasks/settle.ts'
import { Outage } from './outage.ts'
import {
  asksForDue,
  type FetchLane,
  mayAskAgain,
  mostAhead,
  newState,
  type QueueState,
  sawGroups,
} from './queue-state.ts'

export interface FetcherHost {
  readonly workerId: string
  readonly queues: readonly string[]
  readonly leaseTtl: number
  readonly pollInterval: number
  /** Groups of tasks of a queue that are held and not started. */
  unstarted(queue: string): readonly string[]
  /** How many tasks of a queue are held and not started. */
  held(queue: string): number
  /** A claim is about to be sent. The returned function is called when the reply arrives or is given up. It returns false if the leases were given back meanwhile. */
  claiming(op: string): () => boolean
  deliver(tasks: readonly TaskRecord[], claim: Delivery): void
  /** A round over all queues found nothing. */
  foundNothing(): void
  /** The store can no longer be used. */
  broken(error: HoldfastError): void
}

/** Facts about the claim that delivered some tasks. */
export interface Delivery {
  /** Monotonic: when the claim was sent. Its leases began no earlier. */
  readonly askedAt: number
  /** False if the leases were given back while the reply waited. */
  readonly isKept: boolean
}

/** Errors after which looking again is pointless. */
const FATAL = ['STORE_IDENTITY_CHANGED', 'STORE_UNSAFE', 'STORE_CORRUPT', 'SCHEMA_NEWER', 'STORE_CLOSED'] as const
const PAUSES_EVERY = 2_000
/** Once the known pauses are this old, a look waits until they have been read again. */
const PAUSES_LIFE = 4_000
/** How soon to look again for overdue tasks that may not be moved yet. */
const LEFT_ALONE = 100
/** Page size when reading which tasks this worker holds. */
const HELD_PAGE = 1_000

type Rooms = ReadonlyMap<FetchLane, number>

/** This many tasks, at most one of each group. */
const isOfGroups = (tasks: readonly TaskRecord[], count: number): boolean =>
  tasks.length === count && new Set(tasks.map(groupOf)).size === count

export class Fetcher {
  readonly #session: Session
  readonly #pauses: Queues
  readonly #host: FetcherHost
  #states: readonly QueueState[] = []
  readonly #outage: Outage
  #turn = 0
  #stopped = false
  #loops: readonly Promise<void>[] = []
  readonly #rings = new Set<() => void>()
  #unsubscribe: Cancel = () => {}
  #pausesReadAt = Number.NEGATIVE_INFINITY
  #readingPauses: Promise<void> | null = null
  /** Monotonic: when overdue tasks of other queues were last looked for. */
  #sweptAt = Number.NEGATIVE_INFINITY
  /** Claims whose reply was lost: this worker may hold leases without knowing it. */
  #unclear: string[] = []

  constructor(session: Session, pauses: Queues, host: FetcherHost) {
    this.#session = session
    this.#pauses = pauses
    this.#host = host
    this.#outage = new Outage(session)
  }

  addLane(lane: FetchLane): void {
    const states = this.#host.queues.map((name) => newState(name, lane))
    this.#states = [...this.#states, ...states]
  }

  start(): void {
    this.#unsubscribe = this.#session.store.wake((queues) => {
      if (queues !== null) for (const state of this.#states) state.isWoken ||= queues.includes(state.name)
      this.#wake(queues)
    })
    this.#loops = Array.from({ length: this.#session.store.claimsAtOnce }, () => this.#run())
  }

  /** Resolves when no look is in flight and everything found has been delivered. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#unsubscribe()
    this.#outage.stop()
    this.nudge()
    await Promise.all(this.#loops)
  }

  /** A slot is free again. */
  nudge(): void {
    for (const ring of this.#rings) ring()
  }

  /** Looks at every queue, also if a look in flight finds nothing. */
  lookAgain(): void {
    this.#wake(this.#host.queues)
  }

  /** Leases have lapsed that this process may not take yet, because its contact with the store is young. */
  get hasLeftAlone(): boolean {
    return this.#states.some((state) => state.hasLeftAlone)
  }

  /** No look is in flight, and none is due. */
  get isResting(): boolean {
    const now = this.#session.clock.mono()
    return this.#states.every(
      ({ name, restUntil, looks }) => looks === 0 && (restUntil > now || this.#pauses.isPaused(name)),
    )
  }

  #wake(queues: readonly string[] | null): void {
    // Anything may have changed, including which queues are paused.
    if (queues === null) this.#pausesReadAt = Number.NEGATIVE_INFINITY
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
        const rooms = new Map(this.#states.map(({ lane }) => [lane, lane.room()]))
        const state = this.#nextQueue(rooms)
        if (state === null) {
          if (this.isResting) this.#host.foundNothing()
          const hasRoom = [...rooms.values()].some((room) => room > 0)
          await this.#lookAfterOthers(rooms)
          await this.#rest(hasRoom ? this.#untilNextLook(rooms) : PAUSES_EVERY)
        } else await this.#look(state, this.#most(state, rooms))
      } catch (error) {
        if (FATAL.some((code) => isHoldfastError(error, code))) return this.#host.broken(error as HoldfastError)
        await this.#outage.wait(error)
      }
    }
  }

  async #look(state: QueueState, limit: number): Promise<void> {
    const { clock, time } = this.#session
    const { workerId, leaseTtl, pollInterval } = this.#host
    const op = newOp()
    const { wakes, lane } = state
    const free = lane.startable()
    const isAhead = limit > free
    const hasTurns = this.#pauses.limits.hasTurns(state.name)
    let isAnswered = false
    state.looks++
    state.isAhead = isAhead && hasTurns
    lane.asked += limit
    const answered = this.#host.claiming(op)
    try {
      const askedAt = clock.mono()
      const withDue = asksForDue(state, askedAt, this.#coversAll)
      if (withDue) state.dueAskedAt = askedAt
      if (this.#coversAll) this.#sweptAt = askedAt
      const deliver = (leased: readonly TaskRecord[]): void => {
        lane.asked -= limit
        isAnswered = true
        this.#host.deliver(leased, { askedAt, isKept: answered() })
      }
      const want = { queue: state.name, types: lane.types(), limit, workerId, leaseTtl, op }
      const unstarted = hasTurns ? this.#host.unstarted(state.name) : []
      const found = await this.#pauses.looks.look({ ...want, withDue, deliver, isAhead, unstarted })
      this.#outage.ended()
      state.isFull = found.leased.length === limit
      const hadManyGroups = state.hasManyGroups
      const isWhole = found.next === null || found.next > time.now()
      if (state.isAhead && found.leased.length < limit && isWhole)
        sawGroups(state, found.leased.length, unstarted.length, clock.mono())
      if (hasTurns) state.hasManyGroups = isAhead ? found.leased.length >= free : isOfGroups(found.leased, limit)
      if (withDue) state.hasLeftAlone = found.leftAlone > 0
      if (found.moreDue) state.dueAskedAt = Number.NEGATIVE_INFINITY
      if (state.wakes !== wakes) return
      // Slots are free that further tasks of the same groups could have.
      const hasTooFew = isAhead && hadManyGroups && !state.hasManyGroups
      if (state.isFull || found.moreDue || hasTooFew) state.restUntil = 0
      else {
        const now = clock.mono()
        const untilNext = found.next === null ? pollInterval : found.next - time.now()
        // `found.next` also counts overdue tasks that were not asked for or may not be moved yet.
        const isNew = found.leased.length > 0 || withDue || found.isOfPermits === true
        const untilDue = isNew ? now : mayAskAgain(state)
        const soonest = found.leftAlone > 0 ? now + LEFT_ALONE : untilDue
        state.restUntil = Math.min(Math.max(soonest, now + untilNext), now + pollInterval)
      }
    } catch (error) {
      state.restUntil = 0
      if (!isAnswered) {
        lane.asked -= limit
        answered()
        if (isContactLost(error)) this.#unclear.push(op)
      }
      throw error
    } finally {
      state.looks--
      state.isAhead = false
    }
  }

  /** From a queue with places or permits, claims only for free slots: tasks that are held without being started would use them up. */
  #most(state: QueueState, rooms: Rooms): number {
    const { name, lane, hasManyGroups, looks, isAhead } = state
    const { limits } = this.#pauses
    const room = rooms.get(lane)!
    if (!limits.isBound(name)) return room
    const own = limits.of(name)
    const free = lane.startable()
    const forSlots = Math.min(room, free)
    if (own !== null && bindsFetchingAhead(own)) return forSlots
    if (!limits.hasTurns(name)) return room
    // A look ahead takes one task of each group at most. It would leave slots free where fewer groups wait, and is alone, because another
    // look may find a second task of a group.
    if (isAhead) return 0
    if (looks > 0 || (free > 0 && !hasManyGroups)) return forSlots
    return mostAhead(state, room, free, () => this.#host.held(name), this.#session.clock.mono())
  }

  /** A task of this queue has ended here, so tasks that a limit held back may be claimed. */
  freed({ queue, group }: TaskRecord): void {
    if (!this.#pauses.limits.isBound(queue)) return
    this.#pauses.looks.ended(queue, group)
    for (const state of this.#states) if (state.name === queue) state.restUntil = 0
  }

  /** Moves overdue tasks without claiming any: a full worker or a paused queue must not delay expired tasks and the tasks of dead workers. */
  async #lookAfterOthers(rooms: Rooms): Promise<void> {
    const now = this.#session.clock.mono()
    const queues = this.#unlooked(rooms)
    if (this.#stopped || queues.length === 0 || now - this.#sweptAt < PAUSES_EVERY) return
    this.#sweptAt = now
    for (const queue of queues)
      await sweep(this.#session, { queue, by: this.#host.workerId, isStopped: () => this.#stopped })
    this.#outage.ended()
  }

  /** Queues that no ordinary look covers. One is enough if a look reports the overdue tasks of all queues. */
  #unlooked(rooms: Rooms): readonly string[] {
    const names = this.#host.queues
    const looked = new Set(this.#states.filter((state) => this.#isWorthALook(state, rooms)).map(({ name }) => name))
    const unlooked = names.filter((name) => !looked.has(name))
    if (!this.#coversAll) return unlooked
    return unlooked.length < names.length ? [] : names.slice(0, 1)
  }

  /** A look at one queue reports the overdue tasks of all queues. */
  get #coversAll(): boolean {
    return this.#session.store.capabilities.has('due-of-all-queues')
  }

  /** Round-robin over the queues whose next look is due. */
  #nextQueue(rooms: Rooms): QueueState | null {
    const now = this.#session.clock.mono()
    for (let i = 0; i < this.#states.length; i++) {
      const state = this.#states[(this.#turn + i) % this.#states.length]!
      if (state.restUntil > now || (state.looks > 0 && !this.#paysBeside(state)) || !this.#isWorthALook(state, rooms))
        continue
      this.#turn = (this.#turn + i + 1) % this.#states.length
      return state
    }
    return null
  }

  /** A look beside the one in flight finds more, and does not slow it down. */
  #paysBeside({ isFull }: QueueState): boolean {
    return isFull && this.#session.store.isCongested?.() !== true
  }

  /** Not paused, and there is room for its tasks. */
  #isWorthALook(state: QueueState, rooms: Rooms): boolean {
    return !this.#pauses.isPaused(state.name) && this.#most(state, rooms) > 0
  }

  #untilNextLook(rooms: Rooms): number {
    const now = this.#session.clock.mono()
    const { pollInterval } = this.#host
    let soonest = Math.min(PAUSES_EVERY, pollInterval)
    for (const state of this.#states) {
      if (state.looks === 0 && this.#isWorthALook(state, rooms)) soonest = Math.min(soonest, state.restUntil - now)
    }
    return Math.max(0, soonest)
  }

  #rest(delay: number): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    const { clock, contact } = this.#session
    const since = clock.mono()
    return new Promise((done) => {
      const ring = (): void => {
        cancel()
        this.#rings.delete(ring)
        contact.woke(since, delay)
        done()
      }
      const cancel = clock.after(delay, ring)
      this.#rings.add(ring)
    })
  }

  /** Waits for the reply only if the known pauses are old; otherwise the next look sees the result. */
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
    await this.#pauses.refresh({ tries: 1 })
    this.#pausesReadAt = begun
  }

  /** Finds and releases leases whose claim reply was lost. */
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

  async #held(after?: string): Promise<readonly TaskRecord[]> {
    const page = { order: 'oldest', limit: HELD_PAGE, now: null, ...(after === undefined ? null : { after }) } as const
    return (await this.#session.store.list({ workerId: this.#host.workerId }, page)).tasks
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
}
