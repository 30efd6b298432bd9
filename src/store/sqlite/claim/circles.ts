/**
 * Groups take turns in a circle: behind the one that was last, to the end, tasks without a group, and from the front. Where there are more
 * groups than one look hops to, the next look goes on where this one stopped, so that each group is reached even if none before it may
 * start a task.
 */
import type { DatabaseSync } from 'node:sqlite'
import { byBytes } from './lines.ts'

export const UNGROUPED = ''

/** The groups behind `after`, up to `until`, which is the last; null: to the end. */
export interface Arc {
  readonly after: string
  readonly until: string | null
}

/** A circle that took more than one look. */
interface Unfinished {
  /** Behind this group it began. null: at the front. */
  readonly begin: string | null
  /** The last group that was passed. */
  readonly last: string
  readonly isHeldBack: boolean
}

const unfinished = new WeakMap<DatabaseSync, Map<string, Map<number, Unfinished>>>()

/** The circles of one look, one for each priority. */
export class Circles {
  readonly #known: Map<string, Map<number, Unfinished>>
  readonly #queue: string
  readonly #begins = new Map<number, string | null>()
  readonly #cuts = new Map<number, string>()
  #areHeldBack = false
  #areResumed = false

  constructor(db: DatabaseSync, queue: string) {
    this.#known = unfinished.get(db) ?? new Map<string, Map<number, Unfinished>>()
    unfinished.set(db, this.#known)
    this.#queue = queue
  }

  /** There are groups to which this look did not come. */
  get areCut(): boolean {
    return this.#cuts.size > 0
  }

  /** Began in an earlier look. What was written since may be in a group that it had passed. */
  get areResumed(): boolean {
    return this.#areResumed
  }

  /** Earlier looks have found what a limit holds back. */
  get areHeldBack(): boolean {
    return this.#areHeldBack
  }

  /** What is to be looked at, in order. Ungrouped tasks stand for themselves. */
  *at(priority: number, after: string | null): Generator<Arc | typeof UNGROUPED> {
    const known = this.#known.get(this.#queue)?.get(priority)
    const begin = known === undefined ? after : known.begin
    const from = known === undefined ? begin : known.last
    this.#begins.set(priority, begin)
    this.#areResumed ||= known !== undefined
    this.#areHeldBack ||= known?.isHeldBack === true
    const isPastFront = begin === null || (known !== undefined && byBytes(known.last, begin) <= 0)
    if (!isPastFront) yield { after: from!, until: null }
    yield UNGROUPED
    if (this.#cuts.has(priority)) return
    if (isPastFront) yield { after: from ?? UNGROUPED, until: begin }
    else if (begin !== UNGROUPED) yield { after: UNGROUPED, until: begin }
  }

  /** This look ends behind this group. */
  cut(priority: number, last: string): void {
    this.#cuts.set(priority, last)
  }

  turnOver(isHeldBack: boolean): void {
    const known = this.#known.get(this.#queue)
    if (known === undefined && this.#cuts.size === 0) return
    const after = known ?? new Map<number, Unfinished>()
    for (const [priority, begin] of this.#begins) {
      const last = this.#cuts.get(priority)
      if (last === undefined) after.delete(priority)
      else after.set(priority, { begin, last, isHeldBack })
    }
    if (after.size > 0) this.#known.set(this.#queue, after)
    else this.#known.delete(this.#queue)
  }
}
