/** Lists the hints of a queue from the oldest on, as far as a claim needs. */
import type { Instant } from '../../../core/task.ts'
import type { ClaimRequest } from '../../store.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { type Hint, minuteOfHint, queuePrefix } from '../records/hint-names.ts'
import { MINUTE } from '../records/names.ts'
import { HintSorter } from './hint-sorter.ts'
import type { HintContext, Survey } from './hints.ts'

const PAGE = 1_000
/** A survey that finds nothing in this many pages stops. The next one continues from there. */
const MOST_PAGES = 10
/** How often a survey starts from the oldest hint again, when the beginning of the list was known to hold nothing. */
const FROM_THE_START = 30_000

/** In a long queue the remaining hints of one survey serve the next claims for this long. */
const REST_LIFE = 2_000
const LEAST_REST = 200

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
  readonly #starts = new Map<string, Start>()
  readonly #rests = new Map<string, Rest>()

  constructor(kv: RetryingKeyValue, context: HintContext, hints: KnownHints) {
    this.#kv = kv
    this.#context = context
    this.#hints = hints
  }

  async survey(request: ClaimRequest, now: Instant): Promise<Survey> {
    const prefix = queuePrefix(request.queue)
    const sorter = new HintSorter(request, now, this.#context, this.#hints.hintsIn)
    const name = nameOf(request)
    const rest = this.#restOf(name, request.limit)
    if (rest !== null) return { ...restSurvey(rest, now), ...this.#restUse(name, rest) }
    const known = await this.#hints.known(prefix)
    if (known !== null) {
      sorter.add(known)
      this.#addUnlisted(prefix, sorter, undefined)
      return this.#withRest(name, request, sorter.survey())
    }
    const start = this.#startOf(name)
    let after = start?.after
    let isIdle = request.limit > 0
    let isOver = false
    for (let pages = 1; !isOver; pages++) {
      const keys = await this.#kv.list(prefix, after === undefined ? { limit: PAGE } : { limit: PAGE, after })
      isOver = sorter.add(keys) || (keys.length < PAGE && !sorter.isFull)
      isIdle &&= sorter.ready.length === 0 && sorter.overdue.length === 0
      if (sorter.isFull || sorter.ready.length >= request.limit) break
      after = keys.at(-1)
      // Nothing to do up to here, and no new hint is filed this far back.
      if (!isOver && isIdle && minuteOfHint(after!) < now - 2 * MINUTE) {
        this.#starts.set(name, { after: after!, since: start?.since ?? performance.now() })
        if (pages >= MOST_PAGES) {
          sorter.continueAtOnce()
          break
        }
      }
    }
    this.#addUnlisted(prefix, sorter, isOver ? start?.after : null)
    return this.#withRest(name, request, sorter.survey())
  }

  #withRest(name: string, request: ClaimRequest, survey: Survey): Survey {
    const outdated = (): void => this.#hints.outdated()
    if (survey.ready.length <= Math.max(request.limit, LEAST_REST)) return { ...survey, outdated }
    const rest: Rest = { ready: new Map(survey.ready.map((hint) => [hint.key, hint])), at: performance.now() }
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
  #restOf(name: string, limit: number): Rest | null {
    const rest = this.#rests.get(name)
    if (rest === undefined) return null
    if (limit > 0 && rest.ready.size >= limit && performance.now() - rest.at < REST_LIFE) return rest
    if (limit > 0) this.#rests.delete(name)
    return null
  }

  /**
   * Known leases that the list did not show. If the list covered every hint after `from`, those leases have ended. Leases
   * before `from` (null: all leases) may still be there.
   */
  #addUnlisted(prefix: string, sorter: HintSorter, from: string | null | undefined): void {
    for (const [key, until] of this.#context.cache.leased(prefix)) {
      if (sorter.leased.has(key) || this.#context.isTaken(key)) continue
      if (from === null || (from !== undefined && key <= from)) sorter.addUnlisted(key, until)
      else this.#context.cache.delete(key)
    }
  }

  #startOf(name: string): Start | undefined {
    const start = this.#starts.get(name)
    if (start === undefined || performance.now() - start.since < FROM_THE_START) return start
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

/** Workers with different types find different hints, so they do not share what is left of a survey. */
const nameOf = ({ queue, types }: ClaimRequest): string => `${queue} ${types === null ? '' : types.join(' ')}`
