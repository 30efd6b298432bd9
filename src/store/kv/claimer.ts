/** Claims tasks of one queue: surveys its hints, reads the tasks that are worth it, and leases each by compare-and-set. */
import { claimOrder } from '../../core/claim-order.ts'
import { type Code, isContactLost, isHoldfastError } from '../../core/errors.ts'
import { isOverdue } from '../../core/guards.ts'
import { claim, release } from '../../core/machine.ts'
import { applyChange, type Instant, type TaskRecord, withoutHistory } from '../../core/task.ts'
import type { ClaimRequest, ClaimResult } from '../store.ts'
import type { Committer } from './committer.ts'
import { type AttemptOutcome, ClaimAttempts } from './hints/claim-attempts.ts'
import type { Contention } from './hints/contention.ts'
import type { HintCache } from './hints/hint-cache.ts'
import type { Hints, Survey } from './hints/hints.ts'
import { type Hint, queuePrefix } from './records/hint-names.ts'
import { isLive, type LiveTask, type Tasks } from './records/tasks.ts'

/** Tasks that one claim reads only to see whether their lease has lapsed. */
const ROUTINE_READS = 10
/** How long such a read is valid. */
const ROUTINE_EVERY = 30_000
/** The writer of a hint that has waited this long for its task is dead. */
const HINT_LIFE = 3_600_000
/** How soon to look again at a hint that is ahead of its task. */
const AHEAD_WAIT = 5_000
/** How soon to try a task again that the server refuses to read or write. */
const REFUSED_WAIT = 30_000
/** The task of a hint this young is just being written. */
const YOUNG = 2_000
const YOUNG_WAIT = 60
const LONG_LEASE = 30_000

interface Parts {
  readonly tasks: Tasks
  readonly hints: Hints
  readonly cache: HintCache
  readonly contention: Contention
  /** Hints that a claim of this process is trying. */
  readonly inHand: Set<string>
  committer(): Committer
  /** The lease of a task is about to be written. */
  leasing(op: string, id: string): void
}

export interface Found {
  /** Monotonic: when the survey began, at the request's `now`. */
  readonly begun: number
  readonly attempts: ClaimAttempts
  readonly leased: TaskRecord[]
  readonly due: TaskRecord[]
  tokens: number
  /** An error that did not stop the claim, such as that of a lease that may have been written. */
  failure: unknown
}

/** Errors that concern one record: other tasks can be leased. A server refuses single objects whose key or archive it cannot read. */
const OF_ONE_TASK: ReadonlySet<Code> = new Set<Code>([
  'STORE_REFUSED',
  'PAYLOAD_TOO_LARGE',
  'STORE_CORRUPT',
  'INTERNAL',
])

export class Claimer {
  readonly #tasks: Tasks
  readonly #hints: Hints
  readonly #cache: HintCache
  readonly #contention: Contention
  readonly #inHand: Set<string>
  readonly #committer: () => Committer
  readonly #leasing: (op: string, id: string) => void

  constructor({ tasks, hints, cache, contention, inHand, committer, leasing }: Parts) {
    this.#tasks = tasks
    this.#hints = hints
    this.#cache = cache
    this.#contention = contention
    this.#inHand = inHand
    this.#committer = committer
    this.#leasing = leasing
  }

  /** Remembers the state of a task that was read or written. */
  observe({ hint, task }: LiveTask, before?: LiveTask): void {
    if (before !== undefined && before.hint !== null && before.hint !== hint) {
      this.#cache.delete(before.hint)
      this.#hints.retire(before.hint)
    }
    if (hint === null) return
    if (task.lease === null) this.#cache.delete(hint)
    else this.#cache.set(hint, { until: task.lease.expiresAt, task: 'leased' })
  }

  async claim(request: ClaimRequest, now: Instant): Promise<ClaimResult> {
    const begun = performance.now()
    const survey = await this.#hints.survey(request, now)
    const attempts = new ClaimAttempts(
      this.#contention.blocks(survey.ready),
      request.limit,
      this.#contention.isContested,
    )
    const found: Found = { begun, attempts, leased: [], due: [], tokens: 0, failure: null }
    const reported = this.findDue(survey, request, now, found)
    try {
      await this.#lease(survey, request, now, found)
      attempts.isOver = true
      // Leased tasks do not wait long for this. A later claim reports the rest.
      await attempts.until(reported)
    } finally {
      attempts.close()
    }
    const { leased, due } = this.delivered(found)
    return {
      leased: leased.toSorted(claimOrder),
      due,
      next: attempts.isIncomplete ? now : this.next(request.queue, survey),
    }
  }

  /** What was found is delivered in spite of a failure: nobody else knows of the leases, and they would lapse. */
  delivered({ leased, due, failure }: Found): Pick<ClaimResult, 'leased' | 'due'> {
    const isNothing = leased.length === 0 && (due.length === 0 || isContactLost(failure))
    if (failure !== null && isNothing) throw failure
    return { leased: [...leased], due: [...due] }
  }

  /** The store as a whole fails: the claim tries nothing more. */
  failed(error: unknown, found: Found): void {
    noteFailure(error, found)
    found.attempts.failed()
  }

  /** True: the server refuses this task alone, which is left alone for a while. */
  isRefused(hintKey: string, error: unknown, now: Instant, found: Found): boolean {
    if (!isOfOneTask(error)) return false
    this.#cache.set(hintKey, { until: now + REFUSED_WAIT, task: 'mismatch' })
    noteFailure(error, found)
    found.attempts.refused()
    return true
  }

  /** Tries as many hints at once as may still be leased. */
  async #lease(survey: Survey, request: ClaimRequest, now: Instant, found: Found): Promise<void> {
    const { attempts } = found
    let trying = 0
    const tryHints = async (): Promise<void> => {
      while (found.leased.length + trying < request.limit) {
        trying++
        const hint = await attempts.next()
        if (hint !== null) await this.#tryOnce(hint, survey, request, now, found)
        trying--
        if (hint === null) return
      }
    }
    await attempts.until(Promise.all(Array.from({ length: Math.min(request.limit, survey.ready.length) }, tryHints)))
    if (attempts.isOutdated) survey.outdated?.()
  }

  async #tryOnce(hint: Hint, survey: Survey, request: ClaimRequest, now: Instant, found: Found): Promise<void> {
    let outcome: AttemptOutcome = 'done'
    survey.tried?.(hint)
    try {
      // Another claim of this process is trying it, or has just leased it.
      if (this.#inHand.has(hint.key) || this.#isLeased(hint, now)) return
      this.#inHand.add(hint.key)
      outcome = await this.#try(hint, request, now, found).finally(() => this.#inHand.delete(hint.key))
      // What is left to others is not read for a while, so its lease must not end soon.
      if (outcome === 'taken') this.#contention.lost(request.leaseTtl < LONG_LEASE ? undefined : hint)
    } catch (error) {
      this.failed(error, found)
    } finally {
      found.attempts.tried(hint, outcome)
    }
  }

  #isLeased({ key }: Hint, now: Instant): boolean {
    const known = this.#cache.get(key)
    return known?.task === 'leased' && known.until > now
  }

  async #try(hint: Hint, request: ClaimRequest, now: Instant, found: Found): Promise<AttemptOutcome> {
    const cached = this.#contention.isContested ? undefined : this.#tasks.cache.get(hint.id)
    if (cached?.hint === hint.key && cached.task.status === 'pending') {
      if ((await this.#tryToLease(cached, request, now, found)) === 'done') return 'done'
    }
    const live = await this.#read(hint, now, found)
    if (live !== null) return this.#tryToLease(live, request, now, found)
    // A hint that is ahead of its task does not show that another process was faster.
    return this.#cache.get(hint.key)?.task === 'mismatch' ? 'done' : 'taken'
  }

  async #tryToLease(live: LiveTask, request: ClaimRequest, now: Instant, found: Found): Promise<AttemptOutcome> {
    const { task } = live
    if (isOverdue(task, now)) {
      this.addDue(live, request, found)
      return 'done'
    }
    if (task.status !== 'pending') return 'taken'
    if (task.availableAt > now) return 'done'
    const token = `${request.op}.${++found.tokens}`
    const at = this.leaseBegins(task.id, request, now, found)
    const change = claim(task, { token, workerId: request.workerId, leaseTtl: request.leaseTtl, now: at })
    try {
      const leased = await this.#tasks.write(live, applyChange(task, change))
      if (leased === null) return 'taken'
      this.#contention.won()
      this.leased(leased, found)
    } catch (error) {
      if (isContactLost(error)) this.isUnclear(task.id, token, error, found)
      else if (!this.isRefused(live.hint!, error, now, found)) throw error
    }
    return 'done'
  }

  /**
   * Announces the lease to the keepers, and returns when it begins. The event loop may have been busy since the survey: a lease that began
   * then could be over before it is written.
   */
  leaseBegins(id: string, request: ClaimRequest, now: Instant, found: Found): Instant {
    this.#leasing(request.op, id)
    return request.now === null ? now + Math.floor(performance.now() - found.begun) : now
  }

  leased(live: LiveTask, found: Found): void {
    this.#tasks.cache.set(live)
    this.observe(live)
    if (found.attempts.isOver) void this.#release(live.task.id, live.task.lease!.token)
    else {
      found.attempts.leased()
      found.leased.push(withoutHistory(live.task))
    }
  }

  /** It is not known whether the lease was written. */
  isUnclear(id: string, token: string, error: unknown, found: Found): void {
    noteFailure(error, found)
    void this.#release(id, token)
  }

  /** False: another claim of this process is trying it. */
  hold({ key }: Hint): boolean {
    if (this.#inHand.has(key)) return false
    this.#inHand.add(key)
    return true
  }

  letGo(hints: readonly Hint[]): void {
    for (const { key } of hints) this.#inHand.delete(key)
  }

  /** The task of a hint, as far as this process may lease it. */
  async readForLease(hint: Hint, now: Instant, found: Found): Promise<LiveTask | null> {
    if (this.#isLeased(hint, now)) return null
    const cached = this.#contention.isContested ? undefined : this.#tasks.cache.get(hint.id)
    return cached?.hint === hint.key && cached.task.status === 'pending' ? cached : this.#read(hint, now, found)
  }

  /** Releases a lease that no worker knows of. It may not have been written at all. */
  async #release(id: string, token: string): Promise<void> {
    try {
      const stored = await this.#tasks.read(id)
      if (!isLive(stored) || stored.task.lease?.token !== token) return
      await this.#committer().commit([release(stored.task, { token }, stored.task.lease.claimedAt)])
    } catch {
      // Then the lease lapses.
    }
  }

  /** Never rejects. */
  findDue(survey: Survey, request: ClaimRequest, now: Instant, found: Found): Promise<void> {
    return this.#findDue(survey, request, now, found).catch((error: unknown) => noteFailure(error, found))
  }

  async #findDue(survey: Survey, request: ClaimRequest, now: Instant, found: Found): Promise<void> {
    // Not every hint here is due: a lease may have been renewed, or the task claimed again.
    for (let at = 0; at < survey.overdue.length && found.due.length < request.dueLimit; ) {
      if (found.attempts.isLate) return
      const some = survey.overdue.slice(at, at + Math.max(ROUTINE_READS, request.dueLimit - found.due.length))
      at += some.length
      await this.#readForDue(some, request, now, found)
    }
    if (found.due.length < request.dueLimit)
      await this.#readForDue(survey.unknown.slice(0, ROUTINE_READS), request, now, found)
  }

  async #readForDue(hints: readonly Hint[], request: ClaimRequest, now: Instant, found: Found): Promise<void> {
    await Promise.all(
      hints.map(async (hint) => {
        const live = await this.#read(hint, now, found)
        if (live === null) return
        if (isOverdue(live.task, now)) this.addDue(live, request, found)
        else if (live.task.status === 'pending')
          this.#cache.set(hint.key, { until: now + ROUTINE_EVERY, task: 'pending' })
      }),
    )
  }

  addDue(live: LiveTask, { dueLimit }: ClaimRequest, found: Found): void {
    if (found.due.length >= dueLimit || found.due.some(({ id }) => id === live.task.id)) return
    this.#tasks.cache.set(live)
    found.due.push(withoutHistory(live.task))
  }

  /** The task of a hint. null: the task does not name this hint, which is withdrawn as soon as that is safe. */
  async #read(hint: Hint, now: Instant, found: Found): Promise<LiveTask | null> {
    const stored = await this.#tasks.read(hint.id).catch((error: unknown) => {
      // An unreadable task must not stop the others. A damaged one stays so: reading it by its id reports the error.
      if (isHoldfastError(error, 'STORE_REFUSED')) this.isRefused(hint.key, error, now, found)
      else if (isOfOneTask(error)) this.#cache.set(hint.key, { until: now + HINT_LIFE, task: 'mismatch' })
      else throw error
      return undefined
    })
    if (stored === undefined) return null
    if (isLive(stored) && stored.hint === hint.key) {
      this.observe(stored)
      return stored
    }
    this.#cache.delete(hint.key)
    if (stored !== null && this.#tasks.withdrawIfObsolete(hint.key, stored)) {
      this.#hints.retire(hint.key)
      return null
    }
    // The writer of the hint is about to write the task, or has died.
    const age = now - hint.availableAt
    const wait = age < YOUNG ? Math.max(YOUNG_WAIT, age / 2) : AHEAD_WAIT
    this.#cache.set(hint.key, { until: now + wait, task: 'mismatch' })
    if (age > HINT_LIFE) await this.#overtake(hint, now)
    return null
  }

  /** Writes the task's key, so that the writer of the hint has to start again. Then the hint can be withdrawn. */
  async #overtake(hint: Hint, now: Instant): Promise<void> {
    const stored = await this.#tasks.read(hint.id)
    if (isLive(stored)) await this.#tasks.touch(stored)
    else if (stored === null) await this.#committer().writeEmptyTombstone(hint.id, now)
  }

  next(queue: string, { next }: Survey): Instant | null {
    let soonest = next ?? Number.POSITIVE_INFINITY
    // Includes the leases that this claim has just written.
    for (const [, until] of this.#cache.leased(queuePrefix(queue))) soonest = Math.min(soonest, until)
    return soonest === Number.POSITIVE_INFINITY ? null : soonest
  }
}

/** Anything that is not a HoldfastError is a mistake in reading this record. */
const isOfOneTask = (error: unknown): boolean => !isHoldfastError(error) || OF_ONE_TASK.has(error.code)

/** A lost contact counts more than a refusal. */
const noteFailure = (error: unknown, found: Found): void => {
  if (found.failure === null || isContactLost(error)) found.failure = error
}
