/** Lists the hints of a queue from the oldest on, as far as a claim needs. */
import type { Instant } from '../../../core/task.ts'
import type { ClaimRequest } from '../../store.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import type { Timers } from '../access/timers.ts'
import {
  behindGroup,
  groupOfHint,
  groupsPrefix,
  type Hint,
  minuteOfHint,
  queuePrefix,
  queuePrefixOf,
} from '../records/hint-names.ts'
import { groupHash, MINUTE, READY, unescaped } from '../records/names.ts'
import { GroupPages } from './group-pages.ts'
import { HintSorter } from './hint-sorter.ts'
import type { HintContext, Survey, SurveyTurns } from './hints.ts'

const PAGE = 1_000
/** A survey that finds nothing in this many pages stops. The next one continues from there. */
const MOST_PAGES = 10
/** How often a survey starts from the oldest hint again, when the beginning of the list was known to hold nothing. */
const FROM_THE_START = 30_000

/** In a long queue the remaining hints of one survey serve the next claims for this long. */
const REST_LIFE = 2_000
const LEAST_REST = 200
/** With turns, how many ready hints of one group a survey offers at least. */
const LEAST_OF_GROUP = 50

/** Hints of an earlier survey that no claim of this process has tried. */
interface Rest {
  readonly ready: Map<string, Hint>
  /** Monotonic. */
  readonly at: number
}

/** What a survey knows without listing. */
export interface KnownHints {
  hintsIn(key: string): readonly Hint[]
  /** All keys of a queue; null: they must be listed. */
  known(prefix: string): Promise<readonly string[] | null>
  /** Other processes have taken many of the known hints. */
  outdated(): void
}

/** Where the next survey begins. */
interface Start {
  readonly after: string
  /** Monotonic. */
  readonly since: number
}

export class Surveyor {
  readonly #kv: RetryingKeyValue
  readonly #context: HintContext
  readonly #hints: KnownHints
  readonly #groups: GroupPages
  readonly #timers: Timers
  readonly #starts = new Map<string, Start>()
  readonly #rests = new Map<string, Rest>()

  constructor(kv: RetryingKeyValue, timers: Timers, context: HintContext, hints: KnownHints) {
    this.#kv = kv
    this.#context = context
    this.#hints = hints
    this.#timers = timers
    this.#groups = new GroupPages(kv, timers)
  }

  /** A hint that this process writes or hears of. */
  sawHint(key: string): void {
    if (groupOfHint(key) !== null) this.#groups.sawGroup(unescaped(queuePrefixOf(key).slice(READY.length, -1)))
  }

  async survey(request: ClaimRequest, now: Instant, turns: SurveyTurns | null = null): Promise<Survey> {
    const prefix = queuePrefix(request.queue)
    const mostOfGroup = turns === null ? Number.POSITIVE_INFINITY : Math.max(LEAST_OF_GROUP, 2 * request.limit)
    const sorter = new HintSorter(request, now, this.#context, this.#hints.hintsIn, mostOfGroup)
    const name = nameOf(request, turns)
    const rest = this.#restOf(name, request.limit, turns)
    if (rest !== null) return { ...restSurvey(rest, now), ...this.#restUse(name, rest) }
    const known = await this.#hints.known(prefix)
    if (known !== null) {
      sorter.add(known)
      this.#addUnlisted(prefix, sorter, undefined, true)
      return this.#withRest(name, request, sorter.survey())
    }
    const { from, isOver, isAll } = await this.#addUngrouped(prefix, name, request, sorter, now)
    sorter.extend()
    const cutAt = isAll || turns === null ? null : await this.#addTurns(request, turns, sorter)
    const seesGroups = isAll || (turns === null ? await this.#groups.addNext(request.queue, sorter) : cutAt === null)
    if (!seesGroups && sorter.ready.length === 0 && request.limit > 0) sorter.continueAtOnce()
    this.#addUnlisted(prefix, sorter, isOver ? from : null, seesGroups)
    if (cutAt !== null) return { ...sorter.survey(), cutAt }
    // Of a long line, a survey for turns offers only a part.
    return this.#withRest(name, request, sorter.survey(), turns === null || isAll ? LEAST_REST : 0)
  }

  /** Hints of tasks without a group, from the oldest on. `isAll`: the hints of groups were on the same page. */
  async #addUngrouped(
    prefix: string,
    name: string,
    request: ClaimRequest,
    sorter: HintSorter,
    now: Instant,
  ): Promise<{ readonly from: string | undefined; readonly isOver: boolean; readonly isAll: boolean }> {
    const start = this.#startOf(name)
    let after = start?.after
    let isIdle = request.limit > 0
    let isOver = false
    let isAll = false
    for (let pages = 1; !isOver; pages++) {
      const page = await this.#kv.list(prefix, after === undefined ? { limit: PAGE } : { limit: PAGE, after })
      const isLast = page.length < PAGE
      // A part of the hints of groups is not worth much: they have pages of their own.
      const keys = isLast ? page : page.filter((key) => groupOfHint(key) === null)
      isOver = sorter.add(keys) || (keys.length < PAGE && !sorter.isFull)
      isAll = isLast && !sorter.isFull
      isIdle &&= sorter.ready.length === 0 && sorter.overdue.length === 0
      if (sorter.isFull || sorter.ready.length >= request.limit) break
      after = keys.at(-1)
      // Nothing to do up to here, and no new hint is filed this far back.
      if (!isOver && isIdle && minuteOfHint(after!) < now - 2 * MINUTE) {
        this.#starts.set(name, { after: after!, since: start?.since ?? this.#timers.mono() })
        if (pages >= MOST_PAGES) {
          sorter.continueAtOnce()
          break
        }
      }
    }
    return { from: start?.after, isOver, isAll }
  }

  /** null: all of them. Else the last group that it has looked at. */
  #addTurns(
    { queue, limit, limits }: ClaimRequest,
    { after, isPassed }: SurveyTurns,
    sorter: HintSorter,
  ): Promise<string | null> {
    const start = groupsPrefix(queue)
    const ranges = (limits?.turns?.passed ?? []).map(({ first, last }) => [groupHash(first), groupHash(last)] as const)
    return this.#groups.addFrom({
      queue,
      sorter,
      from: after === null || after === '' ? start : behindGroup(queue, after),
      isEnough: () => sorter.ready.length >= limit && countOf(sorter.readyGroups, isPassed) >= limit,
      skip: (key) => {
        const range = ranges.find(([first, last]) => key >= start + first && key < start + last)
        return range === undefined ? key : behindGroup(queue, range[1])
      },
    })
  }

  #withRest(name: string, request: ClaimRequest, survey: Survey, least = LEAST_REST): Survey {
    const outdated = (): void => this.#hints.outdated()
    if (survey.ready.length <= Math.max(request.limit, least)) return { ...survey, outdated }
    const rest: Rest = { ready: new Map(survey.ready.map((hint) => [hint.key, hint])), at: this.#timers.mono() }
    this.#rests.set(name, rest)
    return { ...survey, ...this.#restUse(name, rest) }
  }

  #restUse(name: string, rest: Rest): Pick<Survey, 'tried' | 'outdated'> {
    return {
      tried: ({ key }) => rest.ready.delete(key),
      outdated: () => {
        this.#rests.delete(name)
        this.#hints.outdated()
      },
    }
  }

  /** null: too few are left, or they are too old. */
  #restOf(name: string, limit: number, turns: SurveyTurns | null): Rest | null {
    const rest = this.#rests.get(name)
    if (rest === undefined) return null
    const isYoung = this.#timers.mono() - rest.at < REST_LIFE
    if (limit > 0 && isYoung && rest.ready.size >= limit && hasMany(rest, limit, turns)) return rest
    if (limit > 0) this.#rests.delete(name)
    return null
  }

  /**
   * Known leases that the list did not show. If the list covered every hint after `from`, those leases have ended. Leases
   * before `from` (null: all leases) may still be there, and those of grouped tasks unless `seesGroups`.
   */
  #addUnlisted(prefix: string, sorter: HintSorter, from: string | null | undefined, seesGroups: boolean): void {
    for (const [key, until] of this.#context.cache.leased(prefix)) {
      if (sorter.leased.has(key) || this.#context.isTaken(key)) continue
      const isListed = groupOfHint(key) === null ? from !== null && (from === undefined || key > from) : seesGroups
      if (!isListed) sorter.addUnlisted(key, until)
      else this.#context.cache.delete(key)
    }
  }

  #startOf(name: string): Start | undefined {
    const start = this.#starts.get(name)
    if (start === undefined || this.#timers.mono() - start.since < FROM_THE_START) return start
    this.#starts.delete(name)
    return undefined
  }
}

const restSurvey = ({ ready }: Rest, now: Instant): Survey => ({
  ready: [...ready.values()],
  overdue: [],
  unknown: [],
  next: now,
})

const hasMany = ({ ready }: Rest, limit: number, turns: SurveyTurns | null): boolean => {
  if (turns === null) return true
  let count = 0
  for (const { group } of ready.values()) if (!turns.isPassed(group ?? '') && ++count >= limit) return true
  return false
}

const countOf = (groups: Iterable<string>, isPassed: (group: string) => boolean): number => {
  let count = 0
  for (const group of groups) if (!isPassed(group)) count++
  return count
}

/** Workers with different types find different hints, so they do not share what is left of a survey. */
const nameOf = ({ queue, types }: ClaimRequest, turns: SurveyTurns | null): string =>
  `${queue} ${types === null ? '' : types.join(' ')}${turns === null ? '' : ' in turns'}`
