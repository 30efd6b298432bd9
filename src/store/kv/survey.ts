/** The hints of a queue, listed and sorted by what may be done about each. Goes no further than a look needs. */
import type { Instant } from '../../core/task.ts'
import type { Want } from '../store.ts'
import type { MemoryOfLooks } from './memory-of-looks.ts'
import { type Hint, MINUTE, minuteOfHint, parseHint, queuePrefix } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'

export interface Survey {
  /** To be leased, if their tasks agree; in the order of turn. */
  readonly ready: readonly Hint[]
  /** Expired, or with a lease that may have lapsed. */
  readonly overdue: readonly Hint[]
  /** Of which nothing is known, and which cannot be leased here. */
  readonly unknown: readonly Hint[]
  /** The next instant at which one of them is worth a look. */
  readonly next: Instant | null
  /** This one of the ready is being tried. */
  tried?(hint: Hint): void
}

/** How a look finds the hints of a queue: by listing them, unless the place has a quicker way. */
export interface SurveysHints {
  survey(want: Want, now: Instant): Promise<Survey>
}

export type MakeSurveyor = (memory: MemoryOfLooks, isTaken: (hint: string) => boolean) => SurveysHints

const PAGE = 1_000
/** A look that has listed so many pages in vain goes on with the next one where it stopped. */
const MOST_PAGES = 10
/** How often to begin with the oldest hint again, where it is known that there was nothing at the beginning. */
const FROM_THE_START = 30_000

/** Behind more than a page, what is left of one look serves the next ones, for so long. */
const REST_LIFE = 2_000

interface Rest {
  readonly ready: Map<string, Hint>
  /** Monotonic. */
  readonly at: number
}

/** What a list is taken for: the hints in a key, and how the list of a queue began. */
interface Listing {
  hintsIn(key: string): readonly Hint[]
  listed(prefix: string, keys: readonly string[]): void
}

/** Where the next look begins. */
interface Start {
  readonly after: string
  /** Monotonic. */
  readonly since: number
}

export class Surveyor implements SurveysHints {
  readonly #kv: SteadyKeyValue
  readonly #memory: MemoryOfLooks
  readonly #isTaken: (hint: string) => boolean
  readonly #starts = new Map<string, Start>()
  readonly #rests = new Map<string, Rest>()
  readonly #listing: Listing

  constructor(kv: SteadyKeyValue, memory: MemoryOfLooks, isTaken: (hint: string) => boolean, listing: Listing) {
    this.#listing = listing
    this.#kv = kv
    this.#memory = memory
    this.#isTaken = isTaken
  }

  async survey(want: Want, now: Instant): Promise<Survey> {
    const prefix = queuePrefix(want.queue)
    const sorter = new Sorter(want, now, this.#memory, this.#isTaken, this.#listing.hintsIn)
    const name = nameOf(want)
    const rest = this.#restOf(name, want.limit)
    if (rest !== null) return restSurvey(rest, now)
    const start = this.#startOf(name)
    let after = start?.after
    let isIdle = want.limit > 0
    let isOver = false
    for (let pages = 1; !isOver; pages++) {
      const keys = await this.#kv.list(prefix, after === undefined ? { limit: PAGE } : { limit: PAGE, after })
      if (after === undefined) this.#listing.listed(prefix, keys)
      isOver = sorter.add(keys) || (keys.length < PAGE && !sorter.isFull)
      isIdle &&= sorter.ready.length === 0 && sorter.overdue.length === 0
      if (sorter.isFull || sorter.ready.length >= want.limit) break
      after = keys.at(-1)
      // Nothing at all up to here, and nothing new comes so far back.
      if (!isOver && isIdle && minuteOfHint(after!) < now - 2 * MINUTE) {
        this.#starts.set(name, { after: after!, since: start?.since ?? performance.now() })
        if (pages >= MOST_PAGES) {
          sorter.soon()
          break
        }
      }
    }
    this.#unlisted(prefix, sorter, isOver ? start?.after : null)
    const survey = sorter.sorted()
    if (isOver || survey.ready.length <= want.limit) return survey
    const kept: Rest = { ready: new Map(survey.ready.map((hint) => [hint.key, hint])), at: performance.now() }
    this.#rests.set(name, kept)
    return { ...survey, tried: ({ key }) => kept.ready.delete(key) }
  }

  /** What an earlier look listed and nobody here has tried since, if it is enough and not too old. */
  #restOf(name: string, limit: number): Rest | null {
    const rest = this.#rests.get(name)
    if (rest === undefined) return null
    if (limit > 0 && rest.ready.size >= limit && performance.now() - rest.at < REST_LIFE) return rest
    if (limit > 0) this.#rests.delete(name)
    return null
  }

  /**
   * Leases that we know of and that this list did not show. Where it went over all hints after `from`, those have ended; of
   * others (null: of all) nobody can say.
   */
  #unlisted(prefix: string, sorter: Sorter, from: string | null | undefined): void {
    for (const [key, until] of this.#memory.leased(prefix)) {
      if (sorter.met.has(key) || this.#isTaken(key)) continue
      if (from === null || (from !== undefined && key <= from)) sorter.unlisted(key, until)
      else this.#memory.delete(key)
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
  tried: ({ key }) => ready.delete(key),
})

/** Who finds nothing: where one worker has nothing to do, another may. */
const nameOf = ({ queue, types }: Want): string => `${queue} ${types === null ? '' : types.join(' ')}`

class Sorter {
  readonly ready: Hint[] = []
  readonly overdue: Hint[] = []
  readonly #unknown: Hint[] = []
  readonly #want: Want
  readonly #now: Instant
  readonly #memory: MemoryOfLooks
  readonly #isTaken: (hint: string) => boolean
  readonly #hintsIn: Listing['hintsIn']
  /** Leased ones, as far as we know. */
  readonly met = new Set<string>()
  #next = Number.POSITIVE_INFINITY

  constructor(
    want: Want,
    now: Instant,
    memory: MemoryOfLooks,
    isTaken: (hint: string) => boolean,
    hintsIn: Listing['hintsIn'],
  ) {
    this.#hintsIn = hintsIn
    this.#want = want
    this.#now = now
    this.#memory = memory
    this.#isTaken = isTaken
  }

  /** A look need not know more of them, however many tasks a page tells of. */
  get isFull(): boolean {
    return this.ready.length >= Math.max(PAGE, this.#want.limit)
  }

  soon(): void {
    this.#next = this.#now
  }

  /** A leased one that this look did not list. */
  unlisted(key: string, until: Instant): void {
    const hint = parseHint(key)
    if (hint !== null) this.#leased(hint, until)
  }

  /** True: from here on all is in the future. */
  add(keys: readonly string[]): boolean {
    for (const key of keys) {
      if (this.isFull) return false
      const hints = this.#hintsIn(key)
      if (hints.length > 0 && minuteOfHint(key) > this.#now) {
        this.#next = Math.min(this.#next, minuteOfHint(key))
        return true
      }
      for (const hint of hints) if (!this.#isTaken(hint.key)) this.#sort(hint)
    }
    return false
  }

  #sort(hint: Hint): void {
    const now = this.#now
    const known = this.#memory.get(hint.key)
    const isFresh = known !== undefined && known.until > now
    if (known?.task === 'leased') this.#leased(hint, known.until)
    else if (hint.at > now) this.#later(hint.at)
    else if (isFresh && known.task === 'behind') this.#later(known.until)
    // The expiry is in the hint: it counts whoever wants the task.
    else if (hint.expiresAt !== null && hint.expiresAt <= now) this.#overdue(hint, hint.expiresAt)
    else this.#waiting(hint, isFresh)
  }

  #waiting(hint: Hint, isFresh: boolean): void {
    if (hint.expiresAt !== null) this.#later(hint.expiresAt)
    if (this.#want.limit > 0 && (this.#want.types?.includes(hint.type) ?? true)) this.ready.push(hint)
    else if (!isFresh && hint.at < this.#now - MINUTE) this.#unknown.push(hint)
  }

  #leased(hint: Hint, until: Instant): void {
    this.met.add(hint.key)
    if (until <= this.#now) this.#overdue(hint, until)
    else this.#later(until)
  }

  #overdue(hint: Hint, since: Instant): void {
    this.overdue.push(hint)
    this.#later(since)
  }

  #later(instant: Instant): void {
    this.#next = Math.min(this.#next, instant)
  }

  sorted(): Survey {
    this.ready.sort((a, b) => b.priority - a.priority || a.at - b.at || (a.id < b.id ? -1 : 1))
    return {
      ready: this.ready,
      overdue: this.overdue,
      unknown: this.#unknown,
      next: this.#next === Number.POSITIVE_INFINITY ? null : this.#next,
    }
  }
}
