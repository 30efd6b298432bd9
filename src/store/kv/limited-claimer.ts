/** Claims under the limits of a queue: chooses hints by turns, takes a place for each task, and then leases it. */
import { isContactLost } from '../../core/errors.ts'
import { type ClaimLimits, type GroupTurns, permitted, UNLIMITED } from '../../core/flow/group-turns.ts'
import { isOverdue } from '../../core/guards.ts'
import { claim } from '../../core/machine.ts'
import { applyChange, type Instant, type TaskRecord } from '../../core/task.ts'
import type { ClaimRequest, ClaimResult } from '../store.ts'
import type { Claimer, Found } from './claimer.ts'
import { ClaimAttempts } from './hints/claim-attempts.ts'
import type { Contention } from './hints/contention.ts'
import type { Hints, Survey } from './hints/hints.ts'
import type { Holder } from './places/place-body.ts'
import type { Places } from './places/places.ts'
import type { Register } from './places/register.ts'
import type { Hint } from './records/hint-names.ts'
import { groupHash, groupPlacesKey, queuePlacesKey } from './records/names.ts'
import { isLive, type LiveTask, type Tasks } from './records/tasks.ts'

/** Surveys of one claim. Further ones pass over the groups that the first found full. */
const MOST_SURVEYS = 4

interface Parts {
  readonly tasks: Tasks
  readonly hints: Hints
  readonly places: Places
  readonly contention: Contention
  readonly claimer: Claimer
  now(): Promise<Instant>
}

/** A task that is about to be leased, with the token for it. */
interface Candidate {
  readonly live: LiveTask
  readonly holder: Holder
}

/** Where a claim that leased nothing stopped to look. */
interface Cut {
  /** The cursor of the caller. */
  readonly after: string | null
  /** The hash of the last group. */
  readonly at: string
}

export class LimitedClaimer {
  readonly #parts: Parts
  /** By queue. */
  readonly #cuts = new Map<string, Cut>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async claim(request: ClaimRequest, now: Instant): Promise<ClaimResult> {
    const { queue, id, limits } = request
    if (id !== undefined) return new LimitedLook(this.#parts, request, now, null).ofTask(id)
    const turns = limits?.turns ?? null
    if (turns === null) return new LimitedLook(this.#parts, request, now, null).ofQueue()
    const { after } = turns
    const cut = this.#cuts.get(queue)
    const look = new LimitedLook(this.#parts, request, now, cut?.after === after ? cut.at : null)
    const result = await look.ofQueue()
    // The cursor of the caller has not moved, and behind it there may be more full groups than one claim can look at.
    if (look.cutAt !== null && result.leased.length === 0) this.#cuts.set(queue, { after, at: look.cutAt })
    else this.#cuts.delete(queue)
    return result
  }
}

class LimitedLook {
  readonly #parts: Parts
  readonly #request: ClaimRequest
  readonly #now: Instant
  readonly #limits: ClaimLimits
  readonly #queue: Register | null
  readonly #found: Found
  /** Hints that this look has tried. */
  readonly #tried = new Set<string>()
  /** How many tasks of each group it has leased, by hash; '' for those without a group. */
  readonly #started = new Map<string, number>()
  readonly #full = new Set<string>()
  #isQueueFull = false
  /** The last group that the surveys have looked at; null: they have seen all. */
  cutAt: string | null

  constructor(parts: Parts, request: ClaimRequest, now: Instant, cutAt: string | null) {
    this.cutAt = cutAt
    const { limits = UNLIMITED, queue, limit } = request
    this.#parts = parts
    this.#request = request
    this.#now = now
    this.#limits = hashed(limits)
    this.#queue = limits.concurrency === null ? null : parts.places.register(queuePlacesKey(queue))
    this.#found = {
      begun: performance.now(),
      attempts: new ClaimAttempts([], limit, false),
      leased: [],
      due: [],
      tokens: 0,
      failure: null,
    }
  }

  get #missing(): number {
    return this.#request.limit - this.#found.leased.length
  }

  async ofQueue(): Promise<ClaimResult> {
    const { claimer } = this.#parts
    const { attempts } = this.#found
    let survey = await this.#survey()
    const reported = claimer.findDue(survey, this.#request, this.#now, this.#found)
    const leaseAll = async (): Promise<void> => {
      for (let surveys = 1; ; surveys++) {
        await this.#lease(survey)
        this.#noteFull(survey)
        if (!this.#wantsMore || surveys === MOST_SURVEYS || attempts.isOver || attempts.mustStop) return
        survey = await this.#survey()
      }
    }
    await this.#leaseUntilOver(leaseAll())
    await attempts.until(reported)
    attempts.close()
    const isHeldBack = this.#full.size > 0 || this.#isQueueFull
    const hasMore = survey.hasMore === true && (this.#found.leased.length > 0 || !isHeldBack) && !this.#isOver
    return this.#result(this.#wantsMore || hasMore ? this.#now : claimer.next(this.#request.queue, survey))
  }

  /** A lease that comes later is released. */
  async #leaseUntilOver(work: Promise<void>): Promise<void> {
    const { attempts } = this.#found
    await attempts.until(work.catch((error: unknown) => this.#parts.claimer.failed(error, this.#found)))
    attempts.isOver = true
  }

  /** There are groups that no survey has looked at, and their tasks may have a place. */
  get #wantsMore(): boolean {
    return this.cutAt !== null && this.#missing > 0 && !this.#isQueueFull && !this.#isOver
  }

  /** Its permits were void before it began. */
  get #isOver(): boolean {
    return this.#limits.notAfter !== null && this.#now > this.#limits.notAfter
  }

  /** Reads the task itself, whatever its hint. */
  async ofTask(id: string): Promise<ClaimResult> {
    const stored = await this.#parts.tasks.read(id)
    const { queue, types } = this.#request
    if (isLive(stored) && stored.task.queue === queue && (types?.includes(stored.task.type) ?? true)) {
      if (this.#isReady(stored) && !this.#isOver) await this.#leaseUntilOver(this.#leaseAll([stored]))
      this.#found.attempts.close()
    }
    return this.#result(null)
  }

  #result(next: Instant | null): ClaimResult {
    const { leased, due } = this.#parts.claimer.delivered(this.#found)
    const full = [...this.#full].sort().flatMap((hash) => this.#register(hash)?.group ?? [])
    return { leased, due, next, full, isHeldBack: this.#full.size > 0 || this.#isQueueFull }
  }

  async #survey(): Promise<Survey> {
    const { turns } = this.#limits
    const request = this.#isOver ? { ...this.#request, limit: 0 } : this.#request
    if (turns === null) return this.#parts.hints.survey(request, this.#now)
    const survey = await this.#parts.hints.survey(request, this.#now, {
      after: this.cutAt ?? turns.after,
      mostEach: Math.min(turns.mostEach, turns.perGroup ?? turns.mostEach),
      isPassed: (hash) => this.#isPassed(hash),
    })
    this.cutAt = survey.cutAt ?? null
    return survey
  }

  /** Groups of which this look leases nothing more. */
  #isPassed(hash: string): boolean {
    const { turns } = this.#limits
    if (turns === null) return false
    if (turns.without.includes(hash) || this.#full.has(hash) || this.#left(hash, turns) <= 0) return true
    return turns.perGroup !== null && (this.#register(hash)?.wasJustFull(turns.perGroup) ?? false)
  }

  #left(hash: string, { mostEach, only }: GroupTurns): number {
    const most = hash === '' || only === null ? mostEach : Math.min(mostEach, only.get(hash) ?? 0)
    return most - (this.#started.get(hash) ?? 0)
  }

  /** null: no place is needed. */
  #register(hash: string): Register | null {
    if (hash === '' || this.#limits.turns === null || this.#limits.turns.perGroup === null) return null
    return this.#parts.places.register(groupPlacesKey(this.#request.queue, hash))
  }

  async #lease(survey: Survey): Promise<void> {
    const line = this.#inOrder(survey.ready)
    const { attempts } = this.#found
    while (this.#missing > 0 && !this.#isOver && !this.#isQueueFull && !attempts.isOver && !attempts.mustStop) {
      const hints = await this.#nextOf(line)
      if (hints.length === 0) return
      const own = hints.filter((hint) => this.#parts.claimer.hold(hint))
      try {
        const read = await Promise.all(own.map((hint) => this.#read(hint, survey)))
        await this.#leaseAll(read.filter((live) => live !== null))
      } finally {
        this.#parts.claimer.letGo(own)
      }
    }
  }

  #inOrder(ready: readonly Hint[]): Hint[] {
    const fresh = ready.filter(({ key }) => !this.#tried.has(key))
    const limits = { ...this.#limits, concurrency: null, notAfter: null }
    const apart = this.#parts.contention.blocks(fresh).flat()
    return [...permitted(apart, [], limits, Number.POSITIVE_INFINITY, this.#now).tasks]
  }

  /** The next hints for which there seem to be places. */
  async #nextOf(line: Hint[]): Promise<Hint[]> {
    const { concurrency, turns } = this.#limits
    const wanted = Math.min(this.#missing, (await this.#queue?.room(concurrency!, this.#missing)) ?? this.#missing)
    if (wanted <= 0) {
      this.#isQueueFull = line.some(({ group }) => !this.#isPassed(group ?? ''))
      return []
    }
    const hints: Hint[] = []
    const chosen = new Map<string, number>()
    while (hints.length < wanted && line.length > 0) {
      const some = line.splice(0, 2 * (wanted - hints.length))
      const room = await this.#roomOf(some)
      for (const [n, hint] of some.entries()) {
        const hash = hint.group ?? ''
        const taken = chosen.get(hash) ?? 0
        const left = turns === null ? Number.POSITIVE_INFINITY : this.#left(hash, turns)
        if (taken >= Math.min(left, room.get(hash) ?? Number.POSITIVE_INFINITY)) continue
        hints.push(hint)
        chosen.set(hash, taken + 1)
        if (hints.length < wanted) continue
        line.unshift(...some.slice(n + 1))
        break
      }
    }
    return hints
  }

  async #roomOf(hints: readonly Hint[]): Promise<ReadonlyMap<string, number>> {
    const perGroup = this.#limits.turns?.perGroup ?? null
    const counts = new Map<string, number>()
    if (perGroup === null) return counts
    for (const { group } of hints) if (group !== null) counts.set(group, (counts.get(group) ?? 0) + 1)
    const wanted = (hash: string): number => Math.min(perGroup, counts.get(hash)!)
    const rooms = [...counts.keys()].map(
      async (hash) => [hash, await this.#register(hash)!.room(perGroup, wanted(hash))] as const,
    )
    return new Map(await Promise.all(rooms))
  }

  async #read(hint: Hint, survey: Survey): Promise<LiveTask | null> {
    this.#tried.add(hint.key)
    survey.tried?.(hint)
    const live = await this.#parts.claimer.readForLease(hint, this.#now, this.#found)
    return live !== null && this.#isReady(live) ? live : null
  }

  #isReady(live: LiveTask): boolean {
    const { task } = live
    if (isOverdue(task, this.#now)) {
      this.#parts.claimer.addDue(live, this.#request, this.#found)
      return false
    }
    return task.status === 'pending' && task.availableAt <= this.#now
  }

  /** The task's mark is known: now the places, and then the claim from that mark. */
  async #leaseAll(lives: readonly LiveTask[]): Promise<void> {
    const { op } = this.#request
    const candidates = lives.map((live): Candidate => {
      const token = `${op}.${++this.#found.tokens}`
      return { live, holder: { id: live.task.id, token, sequence: live.sequence } }
    })
    const inGroups = await this.#takeInGroups(candidates)
    const placed = await this.#takeInQueue(inGroups)
    await Promise.all(placed.map((candidate) => this.#write(candidate)))
  }

  async #takeInGroups(candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    const perGroup = this.#limits.turns?.perGroup ?? null
    if (perGroup === null) return candidates
    const groups = Map.groupBy(candidates, ({ live }) => live.task.group)
    const taken = await settled(
      [...groups].map(async ([group, some]) => {
        const register = group === null ? null : this.#register(groupHash(group))
        if (register === null) return some
        const granted = await register.take(holdersOf(some), perGroup, group)
        if (granted.size < some.length) this.#full.add(groupHash(group!))
        return some.filter(({ holder }) => granted.has(holder.token))
      }),
      (some) => this.#giveUp(some.flat()),
    )
    const tokens = new Set(taken.flat().map(({ holder }) => holder.token))
    return candidates.filter(({ holder }) => tokens.has(holder.token))
  }

  async #takeInQueue(candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    if (this.#queue === null || candidates.length === 0) return candidates
    const [granted] = await settled([this.#queue.take(holdersOf(candidates), this.#limits.concurrency!, null)], () =>
      this.#giveUp(candidates),
    )
    const refused = candidates.filter(({ holder }) => !granted!.has(holder.token))
    if (refused.length > 0) this.#isQueueFull = true
    this.#giveUp(refused)
    return candidates.filter(({ holder }) => granted!.has(holder.token))
  }

  #giveUp(candidates: readonly Candidate[]): void {
    for (const { live, holder } of candidates) this.#parts.places.give(this.#placesOf(live.task), holder.token)
  }

  #placesOf({ group }: TaskRecord): readonly string[] {
    const registers = [group === null ? null : this.#register(groupHash(group)), this.#queue]
    return registers.flatMap((register) => register?.key ?? [])
  }

  async #write(candidate: Candidate): Promise<void> {
    const { claimer, tasks, contention } = this.#parts
    const { live, holder } = candidate
    const { task } = live
    const { token } = holder
    const { workerId, leaseTtl } = this.#request
    if (await this.#isVoid()) return this.#giveUp([candidate])
    const at = claimer.leaseBegins(task.id, this.#request, this.#now, this.#found)
    const change = claim(task, { token, workerId, leaseTtl, now: at })
    try {
      const leased = await tasks.write(live, applyChange(task, change), { places: this.#placesOf(task) })
      if (leased === null) {
        contention.lost()
        this.#giveUp([candidate])
        return
      }
      contention.won()
      const hash = task.group === null ? '' : groupHash(task.group)
      this.#started.set(hash, (this.#started.get(hash) ?? 0) + 1)
      claimer.leased(leased, this.#found)
    } catch (error) {
      // The claim may have been written, so the place stays until a later check finds that it was not.
      if (isContactLost(error)) return claimer.isUnclear(task.id, token, error, this.#found)
      this.#giveUp([candidate])
      // The other claims of the batch go on.
      if (!claimer.isRefused(live.hint!, error, this.#now, this.#found)) claimer.failed(error, this.#found)
    }
  }

  /** The permits of a rate do not last. */
  async #isVoid(): Promise<boolean> {
    const { notAfter } = this.#limits
    if (notAfter === null) return false
    return (this.#request.now ?? (await this.#parts.now())) > notAfter
  }

  /** Which groups have no place for a hint that is left. */
  #noteFull({ ready }: Survey): void {
    const { turns } = this.#limits
    if (turns === null || turns.perGroup === null) return
    const seen = new Set(ready.flatMap(({ key, group }) => (group === null || this.#tried.has(key) ? [] : group)))
    for (const hash of seen)
      if (!turns.without.includes(hash) && this.#register(hash)!.isFull(turns.perGroup)) this.#full.add(hash)
  }
}

const holdersOf = (candidates: readonly Candidate[]): readonly Holder[] => candidates.map(({ holder }) => holder)

/** All results. If one fails, `undo` gets the others before the error is thrown. */
const settled = async <T>(calls: readonly Promise<T>[], undo: (done: readonly T[]) => void): Promise<readonly T[]> => {
  const results = await Promise.allSettled(calls)
  const done = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed === undefined) return done
  undo(done)
  throw failed.reason
}

/** Groups by their hashes, as in hints. Their order is the order of turns here. */
const hashed = (limits: ClaimLimits): ClaimLimits => {
  const { turns } = limits
  if (turns === null) return limits
  const hash = (group: string): string => (group === '' ? '' : groupHash(group))
  return {
    ...limits,
    turns: {
      ...turns,
      after: turns.after === null ? null : hash(turns.after),
      without: turns.without.map(hash),
      only: turns.only === null ? null : new Map([...turns.only].map(([group, most]) => [hash(group), most])),
      passed: [],
    },
  }
}
