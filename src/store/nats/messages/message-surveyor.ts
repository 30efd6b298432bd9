/** Surveys a queue: messages that are delivered to this process, hints whose time has come, and leases that have lapsed. */
import { claimOrder } from '../../../core/claim-order.ts'
import type { Instant } from '../../../core/task.ts'
import type { HintContext, Survey, SurveyTurns } from '../../kv/hints/hints.ts'
import { type Hint, queuePrefix } from '../../kv/records/hint-names.ts'
import { READY, unescaped } from '../../kv/records/names.ts'
import type { ClaimRequest } from '../../store.ts'
import type { Contact } from '../connection/contact.ts'
import { isRefusal } from '../connection/errors.ts'
import { ALL_TYPES, hintOf, type WorkType } from '../subjects.ts'
import type { Announcements } from './announcements.ts'
import type { GroupedHints } from './grouped-hints.ts'
import type { Later, LaterHints } from './later-hints.ts'
import type { LostDeliveries } from './lost-deliveries.ts'
import type { ReadyMessages } from './ready-messages.ts'

export interface SurveyParts {
  readonly messages: ReadyMessages
  readonly announcements: Announcements
  readonly later: LaterHints
  readonly grouped: GroupedHints
  readonly lost: LostDeliveries
  readonly contact: Contact
}

/** Hints for later that one survey turns into ready messages. */
const MOST_DUE = 500
/** When to look again for tasks that were not written yet. The delay doubles each time. */
const FIRST_RETRY = 10
const LAST_RETRY = 2_000
/** How long a pending task whose message was delivered is left to the process that got the message. */
const PATIENCE = 5_000
/**
 * When messages of types that this worker does not handle are in the way: how many one request takes, and how long one survey
 * goes on.
 */
const SORTING_BATCH = 250
const SORTING_TIME = 2_000
/**
 * A worker claims at least this often, whatever its poll interval. Announcements can be lost, and most claims send no
 * request.
 */
const LONGEST_IDLE = 10_000

/** With turns, a survey offers more groups than the claim needs, and more tasks of each: some are full, or taken. */
const SPARE_GROUPS = 20
const SPARE_OF_GROUP = 4

export class MessageSurveyor {
  readonly #messages: ReadyMessages
  readonly #announcements: Announcements
  readonly #later: LaterHints
  readonly #grouped: GroupedHints
  readonly #lost: LostDeliveries
  readonly #contact: Contact
  readonly #cache: HintContext['cache']
  readonly #isTaken: (hint: string) => boolean
  #surveys = 0

  constructor(parts: SurveyParts, { cache, isTaken }: HintContext) {
    this.#messages = parts.messages
    this.#announcements = parts.announcements
    this.#later = parts.later
    this.#grouped = parts.grouped
    this.#lost = parts.lost
    this.#contact = parts.contact
    this.#cache = cache
    this.#isTaken = isTaken
  }

  survey(request: ClaimRequest, now: Instant, turns: SurveyTurns | null = null): Promise<Survey> {
    return this.#contact.run(() => this.#survey(request, now, turns))
  }

  async #survey(request: ClaimRequest, now: Instant, turns: SurveyTurns | null): Promise<Survey> {
    const prefix = queuePrefix(request.queue)
    const queue = prefix.slice(READY.length, -1)
    const found = new Found(now, request.limit, turns !== null)
    this.#messages.surveyed(queue)
    this.#grouped.surveyed(queue)
    await Promise.all([this.#surveyLater(queue, found), this.#grouped.catchUp(queue)])
    for (const [key, until] of this.#cache.leased(prefix)) {
      if (until > now) found.wakeAt(until)
      else if (!this.#isTaken(key)) found.addOverdue(hintOf(key), until)
    }
    await this.#offerHeld(queue, request, found)
    if (request.limit > 0) await this.#part(found, () => this.#take(queue, request, found, turns))
    if (this.#announcements.hasListeners) found.wakeAt(now + LONGEST_IDLE)
    if (found.refused !== null && found.isEmpty) throw found.refused
    return found.survey()
  }

  async #surveyLater(queue: string, found: Found): Promise<void> {
    const { due, next } = await this.#later.due(queue, found.now, (read) => this.#part(found, read))
    if (next !== null) found.wakeAt(next)
    const nowDue = due.filter(({ kind }) => kind === 'due')
    await Promise.all(nowDue.slice(0, MOST_DUE).map((later) => this.#announce(later, found)))
    if (nowDue.length > MOST_DUE) found.wakeAt(found.now)
    for (const { kind, hint } of due) if (kind === 'expiry') this.#expired(hintOf(hint), found)
  }

  /** Another process may announce the same hint at this moment. The server keeps one message. */
  #announce(later: Later, found: Found): Promise<void> {
    return this.#part(found, async () => {
      const hints = hintOf(later.hint).group === null ? this.#messages : this.#grouped
      await hints.announce(later.hint, true)
      await this.#later.remove(later)
    })
  }

  /** A part that the server refuses must not stop the others. If nothing else was found, the survey fails with that error. */
  async #part(found: Found, part: () => Promise<void>): Promise<void> {
    try {
      await part()
    } catch (error) {
      if (!isRefusal(error)) throw error
      found.refused ??= error
      found.wakeAt(found.now + LAST_RETRY)
    }
  }

  #expired(hint: Hint, found: Found): void {
    const known = this.#cache.get(hint.key)
    if (known !== undefined && known.until > found.now && known.task !== 'pending') found.wakeAt(known.until)
    else if (!this.#isTaken(hint.key)) found.addOverdue(hint, hint.expiresAt!)
  }

  /** Messages that this process holds without a lease: their task was not written yet, or an earlier claim had no room. */
  async #offerHeld(queue: string, request: ClaimRequest, found: Found): Promise<void> {
    const foreign: string[] = []
    const arrived: Hint[] = []
    for (const key of [...this.#messages.heldIn(queue)]) {
      if (this.#cache.get(key)?.task === 'leased' || this.#isTaken(key)) continue
      const hint = hintOf(key)
      if (request.limit > 0 && !isWanted(hint, request)) foreign.push(key)
      else if (found.room <= 0) this.#messages.giveBack(key)
      else {
        if (this.#messages.seen(key)) arrived.push(hint)
        this.#offer(hint, found)
      }
    }
    if (arrived.length > 0) this.#retrySoon(queue, arrived)
    await Promise.all(foreign.map((key) => this.#messages.separate(key)))
  }

  #offer(hint: Hint, found: Found): void {
    // Only a hint that was ahead of its task is offered less and less often.
    const isAhead = this.#cache.get(hint.key)?.task === 'mismatch'
    const againAt = isAhead && hint.availableAt <= found.now ? this.#messages.offer(hint.key) : null
    if (hint.availableAt > found.now) found.wakeAt(hint.availableAt)
    else if (againAt === null) found.ready.push(hint)
    else found.wakeAt(found.now + Math.max(1, Math.ceil(againAt - performance.now())))
  }

  /** Highest priority first. Types with a consumer of their own, and groups, alternate with the others of their priority. */
  async #take(queue: string, request: ClaimRequest, found: Found, turns: SurveyTurns | null): Promise<void> {
    const types = (await this.#messages.types.ofQueue(queue)).filter(
      (type) => isGroup(type) || isWanted(unescapedType(type), request),
    )
    const grouped = this.#grouped.prioritiesOf(queue)
    const ungrouped = types.map(({ priority }) => Number(priority))
    const round = this.#surveys++
    for (const priority of [...new Set([...ungrouped, ...grouped])].sort((a, b) => b - a)) {
      const equals = types.filter((type) => Number(type.priority) === priority)
      await this.#findLost(equals, found)
      const takes = equals.map((type) => () => this.#part(found, () => this.#takeOf(type, request, found)))
      if (grouped.includes(priority))
        takes.push(() => this.#part(found, () => this.#takeGroups(queue, priority, request, found, turns)))
      for (const n of takes.keys()) {
        if (found.isEnough) return found.wakeAt(found.now)
        await takes[(round + n) % takes.length]!()
      }
    }
  }

  async #takeGroups(
    queue: string,
    priority: number,
    request: ClaimRequest,
    found: Found,
    turns: SurveyTurns | null,
  ): Promise<void> {
    const most = turns === null ? found.room : Number.POSITIVE_INFINITY
    const { hints, cutAt, hasMore } = await this.#grouped.take({
      queue,
      priority,
      most,
      mostGroups: found.roomForGroups,
      mostOfGroup: turns === null ? most : Math.min(request.limit, turns.mostEach) + SPARE_OF_GROUP,
      after: turns?.after ?? null,
      // Under limits a claim may leave what it was offered.
      isExclusive: turns === null && request.limits === undefined,
      isUsable: (key) => this.#isUsable(key, request, found),
      leftFor: (delay) => found.wakeAt(found.now + Math.ceil(delay)),
      isPassed: (group) => turns?.isPassed(group) ?? false,
    })
    found.cutAt ??= cutAt
    if (turns === null && hasMore) found.wakeAt(found.now)
    found.hasMore ||= hasMore
    found.grouped.push(...hints)
  }

  #isUsable(key: string, request: ClaimRequest, found: Found): boolean {
    const known = this.#cache.get(key)
    const isFresh = known !== undefined && known.until > found.now
    if (known?.task === 'leased' || this.#isTaken(key)) return false
    const hint = hintOf(key)
    if (!isWanted(hint, request)) return false
    if (isFresh && known.task === 'mismatch') found.wakeAt(known.until)
    else if (hint.availableAt > found.now) found.wakeAt(hint.availableAt)
    else return true
    return false
  }

  async #takeOf(type: WorkType, request: ClaimRequest, found: Found): Promise<void> {
    const until = performance.now() + SORTING_TIME
    for (let most = found.room; most > 0; most = SORTING_BATCH) {
      const { hints: keys, isFull } = await this.#messages.take(type, most)
      const hints = keys.map(hintOf)
      const wanted = hints.filter((hint) => isWanted(hint, request))
      const others = hints.filter((hint) => !isWanted(hint, request))
      if (isFull) found.wakeAt(found.now)
      this.#offerTaken(type.queue, wanted, found)
      await Promise.all(others.map(({ key }) => this.#messages.separate(key)))
      const isOver = !isFull || others.length === 0 || found.room <= 0
      if (isOver || performance.now() > until) return
    }
  }

  #offerTaken(queue: string, hints: Hint[], found: Found): void {
    if (hints.length > 0) this.#retrySoon(queue, hints)
    for (const hint of hints.sort(claimOrder)) {
      const known = this.#cache.get(hint.key)
      // Delivered again although the task is running: now this process watches its lease.
      if (known?.task === 'leased' && known.until > found.now) continue
      if (found.room > 0) this.#offer(hint, found)
      else {
        this.#messages.giveBack(hint.key)
        found.wakeAt(found.now)
      }
    }
  }

  /** A message may arrive before its task is written. Then the next claim comes soon, and not with the next message. */
  #retrySoon(queue: string, hints: readonly Hint[], wait = FIRST_RETRY): void {
    setTimeout(() => {
      const ahead = hints.filter(({ key }) => this.#messages.isHeld(key) && this.#cache.get(key)?.task === 'mismatch')
      if (ahead.length === 0) return
      this.#announcements.wake([queue])
      this.#retrySoon(queue, ahead, Math.min(LAST_RETRY, wait * 2))
    }, wait).unref()
  }

  /** Reads the task of a message that no process holds. If the task is still pending, it is announced again. */
  async #findLost(types: readonly WorkType[], found: Found): Promise<void> {
    for (const key of types.flatMap((type) => this.#lost.find(type))) {
      const known = this.#cache.get(key)
      if (this.#messages.isHeld(key) || this.#isTaken(key) || known?.task === 'leased') continue
      if (known?.task !== 'pending') found.unknown.push(hintOf(key))
      else if (found.now - hintOf(key).availableAt > PATIENCE) {
        this.#cache.delete(key)
        await this.#part(found, () => this.#messages.announce(key))
      }
    }
  }
}

const isWanted = ({ type }: { readonly type: string }, { types, limit }: ClaimRequest): boolean =>
  limit > 0 && (types?.includes(type) ?? true)

const isGroup = ({ type }: WorkType): boolean => type === ALL_TYPES

const unescapedType = ({ type }: WorkType): { readonly type: string } => ({ type: unescaped(type) })

class Found {
  readonly now: Instant
  /** Without a group. */
  readonly ready: Hint[] = []
  readonly grouped: Hint[] = []
  /** There are groups that were not looked at: the last one that was. */
  cutAt: string | null = null
  hasMore = false
  readonly #limit: number
  readonly #takesTurns: boolean
  readonly overdue = new Map<string, Hint>()
  readonly unknown: Hint[] = []
  /** The error of a part that the server refused. */
  refused: unknown = null
  #next = Number.POSITIVE_INFINITY

  constructor(now: Instant, limit: number, takesTurns: boolean) {
    this.now = now
    this.#limit = limit
    this.#takesTurns = takesTurns
  }

  /** With turns, those without a group are one group of many. */
  get room(): number {
    return this.#limit - this.ready.length - (this.#takesTurns ? 0 : this.grouped.length)
  }

  /** How many more groups are worth a look. With turns, some may be full. */
  get roomForGroups(): number {
    if (!this.#takesTurns) return this.room
    return this.#limit + SPARE_GROUPS - new Set(this.grouped.map(({ group }) => group)).size
  }

  get isEnough(): boolean {
    return this.room <= 0 && this.roomForGroups <= 0
  }

  get isEmpty(): boolean {
    return this.ready.length === 0 && this.grouped.length === 0 && this.overdue.size === 0 && this.unknown.length === 0
  }

  addOverdue(hint: Hint, since: Instant): void {
    this.overdue.set(hint.key, hint)
    this.wakeAt(since)
  }

  wakeAt(instant: Instant): void {
    this.#next = Math.min(this.#next, instant)
  }

  survey(): Survey {
    return {
      ready: [...this.ready, ...this.grouped].sort(claimOrder),
      ...(this.cutAt === null ? null : { cutAt: this.cutAt }),
      hasMore: this.hasMore,
      overdue: [...this.overdue.values()],
      unknown: this.unknown,
      next: this.#next === Number.POSITIVE_INFINITY ? null : this.#next,
    }
  }
}
