/** Sorts the hints of a queue by what a claim can do about each. */
import { claimOrder } from '../../../core/claim-order.ts'
import type { Instant } from '../../../core/task.ts'
import type { ClaimRequest } from '../../store.ts'
import { groupOfHint, type Hint, minuteOfHint, parseHint } from '../records/hint-names.ts'
import { MINUTE } from '../records/names.ts'
import type { HintContext, Survey } from './hints.ts'

/** Enough for several processes to stay out of each other's way. */
const MOST_READY = 4_000

export class HintSorter {
  readonly ready: Hint[] = []
  readonly overdue: Hint[] = []
  readonly #unknown: Hint[] = []
  readonly #request: ClaimRequest
  readonly #now: Instant
  readonly #context: HintContext
  readonly #hintsIn: (key: string) => readonly Hint[]
  /** Listed hints whose tasks are leased, as far as this process knows. */
  readonly leased = new Set<string>()
  /** Groups with a ready hint; '' for those without a group. */
  readonly readyGroups = new Set<string>()
  /** Ready hints by group and priority. */
  readonly #counts = new Map<string, number>()
  readonly #mostOfGroup: number
  #most: number
  #next = Number.POSITIVE_INFINITY

  /** `mostOfGroup`: further ready hints of one group and priority are left out. */
  constructor(
    request: ClaimRequest,
    now: Instant,
    context: HintContext,
    hintsIn: (key: string) => readonly Hint[],
    mostOfGroup = Number.POSITIVE_INFINITY,
  ) {
    this.#mostOfGroup = mostOfGroup
    this.#most = Math.max(MOST_READY, request.limit)
    this.#request = request
    this.#now = now
    this.#context = context
    this.#hintsIn = hintsIn
  }

  get isFull(): boolean {
    return this.ready.length >= this.#most
  }

  /** The hints of groups have room beside those without a group. */
  extend(): void {
    this.#most = this.ready.length + Math.max(MOST_READY, this.#request.limit)
  }

  /** There is more to list: the next claim should come at once. */
  continueAtOnce(): void {
    this.#next = this.#now
  }

  /** A lease that this process knows of and that the list did not show. */
  addUnlisted(key: string, until: Instant): void {
    const hint = parseHint(key)
    if (hint !== null) this.#addLeased(hint, until)
  }

  /** Returns true when the rest of the hints without a group is in the future. */
  add(keys: readonly string[]): boolean {
    let isOver = false
    /** The group whose other hints are in the future. */
    let later: string | null | undefined
    for (const key of keys) {
      const group = groupOfHint(key)
      if (group === later) continue
      if (this.isFull) return false
      const hints = this.#hintsIn(key)
      if (hints.length > 0 && minuteOfHint(key) > this.#now) {
        this.#wakeAt(minuteOfHint(key))
        later = group
        isOver ||= group === null
        continue
      }
      for (const hint of hints) if (!this.#context.isTaken(hint.key)) this.#sort(hint)
    }
    return isOver
  }

  #sort(hint: Hint): void {
    const now = this.#now
    const known = this.#context.cache.get(hint.key)
    const isFresh = known !== undefined && known.until > now
    if (known?.task === 'leased') this.#addLeased(hint, known.until)
    else if (hint.availableAt > now) this.#wakeAt(hint.availableAt)
    else if (isFresh && known.task === 'mismatch') this.#wakeAt(known.until)
    // Whether a task has expired does not depend on the types that this worker handles.
    else if (hint.expiresAt !== null && hint.expiresAt <= now) this.#addOverdue(hint, hint.expiresAt)
    else this.#addWaiting(hint, isFresh)
  }

  #addWaiting(hint: Hint, isFresh: boolean): void {
    if (hint.expiresAt !== null) this.#wakeAt(hint.expiresAt)
    if (this.#request.limit > 0 && (this.#request.types?.includes(hint.type) ?? true)) this.#addReady(hint)
    else if (!isFresh && hint.availableAt < this.#now - MINUTE) this.#unknown.push(hint)
  }

  #addReady(hint: Hint): void {
    if (this.#context.contention.isOvertaken(hint, this.#now)) return
    const group = hint.group ?? ''
    const name = `${group} ${hint.priority}`
    const others = this.#counts.get(name) ?? 0
    if (others >= this.#mostOfGroup) return
    this.#counts.set(name, others + 1)
    this.readyGroups.add(group)
    this.ready.push(hint)
  }

  #addLeased(hint: Hint, until: Instant): void {
    this.leased.add(hint.key)
    if (until <= this.#now) this.#addOverdue(hint, until)
    else this.#wakeAt(until)
  }

  #addOverdue(hint: Hint, since: Instant): void {
    this.overdue.push(hint)
    this.#wakeAt(since)
  }

  #wakeAt(instant: Instant): void {
    this.#next = Math.min(this.#next, instant)
  }

  survey(): Survey {
    this.ready.sort(claimOrder)
    return {
      ready: this.ready,
      overdue: this.overdue,
      unknown: this.#unknown,
      next: this.#next === Number.POSITIVE_INFINITY ? null : this.#next,
    }
  }
}
