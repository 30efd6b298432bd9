/**
 * Claims in turns: of the lines at one priority, one task of each group that waits, then a second one of each, and so on. Hops from group to
 * group along an index, so that it matters little how much waits in each. core/flow/group-turns.ts has the rule.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { GroupRange, GroupTurns } from '../../../core/flow/group-turns.ts'
import type { Instant } from '../../../core/task.ts'
import { prepared } from '../file/connection.ts'
import { type Arc, Circles, UNGROUPED } from './circles.ts'
import { firstOf, GroupCursor, Merged, runningOf } from './group-tasks.ts'
import { byBytes, type Candidate, isGrouped, type Line } from './lines.ts'
import type { Pick } from './ready.ts'

/** Hops of one look beyond two for each task that it may lease. */
const MOST_HOPS = 1_000
/** Hops at a priority for which the priorities above have left none. */
const LEAST_HOPS = 20
/** After a circle that took several looks: what came to the groups that it had passed is found by the next circle. */
const NEXT_CIRCLE = 1_000

const BEGINS = `select available_at from holdfast_task indexed by holdfast_task_ready where status = 'pending' and queue = ? and type = ? and line = ? and priority = ? order by available_at limit 1`

/** What a group may still start. */
interface Account {
  /** Its free places; those of other workers count. */
  places: number
  /** How many this look may lease. */
  left: number
}

/** A group at one priority. */
interface Waiting {
  readonly account: Account
  readonly group: string
  readonly tasks: Merged
  taken: number
}

/** Where a look has found the first task that may be leased: the groups before have nothing to lease. */
export interface Start {
  readonly priority: number
  /** It is in the first group behind this one. */
  readonly after: string
  /** Those before that are full. */
  readonly full: readonly string[]
}

export class Turns {
  readonly #db: DatabaseSync
  readonly #queue: string
  readonly #turns: GroupTurns
  readonly #now: Instant
  readonly #first: Pick
  readonly #accounts = new Map<string, Account>()
  readonly #without: ReadonlySet<string>
  readonly #only: readonly string[] | null
  readonly #passed: readonly GroupRange[]
  readonly #full = new Set<string>()
  readonly #circles: Circles
  readonly #begin: Start | null
  #place: Omit<Start, 'full'> | null = null
  #hops: number
  #isHeldBack = false

  /** `first` chooses from tasks without a group; `begin` is the start that a look for the same claim has found. */
  constructor(
    db: DatabaseSync,
    queue: string,
    turns: GroupTurns,
    now: Instant,
    limit: number,
    first: Pick,
    begin: Start | null = null,
  ) {
    this.#db = db
    this.#queue = queue
    this.#turns = turns
    this.#now = now
    this.#first = first
    this.#begin = begin
    for (const group of begin?.full ?? []) this.#full.add(group)
    this.#without = new Set(turns.without)
    this.#only = turns.only === null ? null : [...turns.only.keys()].sort(byBytes)
    this.#passed = turns.passed.length === 0 ? [] : turns.passed.toSorted((a, b) => byBytes(a.first, b.first))
    this.#hops = MOST_HOPS + 2 * limit
    this.#circles = new Circles(db, queue)
  }

  /** Groups with a ready task and no place, in order. */
  get full(): string[] {
    return [...this.#full].sort(byBytes)
  }

  get isHeldBack(): boolean {
    return this.#isHeldBack || this.#full.size > 0 || this.#circles.areHeldBack
  }

  /** The next instant worth a look, if no task becomes available before. */
  get next(): Instant | undefined {
    if (this.#circles.areCut) return this.#now
    return this.#circles.areResumed ? this.#now + NEXT_CIRCLE : undefined
  }

  /** For a look that ends with the first task. null: that has no group. */
  get start(): Start | null {
    return this.#place && { ...this.#place, full: [...this.#full] }
  }

  /** The next look goes on behind the groups that this one has passed. */
  turnOver(): void {
    this.#circles.turnOver(this.isHeldBack)
  }

  /** Whether one task of this group may be leased. */
  permits(group: string | null): boolean {
    if (group !== null && this.#without.has(group)) return false
    const { places, left } = this.#account(group ?? UNGROUPED)
    if (places === 0) this.#full.add(group!)
    return places > 0 && left > 0
  }

  readonly pick: Pick = (lines, most) => {
    const picked: Candidate[] = []
    const waiting: Waiting[] = []
    for (const group of this.#waiting(lines)) {
      if (this.#take(group, picked)) waiting.push(group)
      if (picked.length === most) return picked
    }
    for (let isTaken = true; isTaken; ) {
      isTaken = false
      for (const group of waiting) {
        isTaken = this.#take(group, picked) || isTaken
        if (picked.length === most) return picked
      }
    }
    return picked
  }

  /** The next task of this group, if there is one and it may be leased. */
  #take(waiting: Waiting, picked: Candidate[]): boolean {
    const { account, tasks, group } = waiting
    if (account.left === 0 && account.places > 0) return false
    const task = tasks.at(waiting.taken)
    if (task === undefined) return false
    if (account.places === 0) {
      this.#full.add(group)
      return false
    }
    picked.push(task)
    waiting.taken++
    account.places--
    account.left--
    return true
  }

  /** In the order of their turns at this priority. */
  *#waiting(lines: readonly Line[]): Generator<Waiting> {
    const { priority } = lines[0]!
    const grouped = lines.filter((line) => isGrouped(line) && this.#isDue(line))
    const ungrouped = lines.filter((line) => !isGrouped(line))
    const types = new Set(grouped.map(({ type }) => type))
    const cursors = [...types].map((type) => new GroupCursor(this.#db, [this.#queue, type, priority], this.#only))
    const { after } = this.#begin?.priority === priority ? this.#begin : this.#turns
    for (const part of this.#circles.at(priority, after)) {
      if (part !== UNGROUPED) yield* this.#groups(cursors, priority, part)
      else if (ungrouped.length > 0) {
        this.#place = null
        yield this.#of(UNGROUPED, new Merged([(count) => this.#first(ungrouped, count)]))
      }
    }
  }

  /** Hops are for lines in which something is due. */
  #isDue({ type, kind, priority }: Line): boolean {
    const row = prepared(this.#db, BEGINS).get(this.#queue, type, kind, priority) as unknown as [Instant] | undefined
    return row !== undefined && row[0] <= this.#now
  }

  *#groups(cursors: readonly GroupCursor[], priority: number, { after, until }: Arc): Generator<Waiting> {
    if (cursors.length === 0) return
    for (const cursor of cursors) cursor.seek(after)
    let last = after
    for (let hops = Math.max(this.#hops, LEAST_HOPS); ; hops--) {
      const group = firstOf(cursors)
      if (group === null || (until !== null && byBytes(group, until) > 0)) return
      if (hops === 0) return this.#circles.cut(priority, last)
      this.#hops--
      const range = this.#rangeWith(group)
      if (range === null && !this.#without.has(group)) {
        const due = cursors.filter((cursor) => cursor.group === group && cursor.isDue(this.#now))
        this.#place = { priority, after: last }
        if (due.length > 0) yield this.#of(group, new Merged(due.map((cursor) => cursor.reader(this.#now))))
      }
      this.#isHeldBack ||= range !== null
      last = range === null ? group : range.last
      for (const cursor of cursors)
        if (cursor.group !== undefined && byBytes(cursor.group, last) <= 0) cursor.seek(last)
    }
  }

  #of(group: string, tasks: Merged): Waiting {
    return { account: this.#account(group), group, tasks, taken: 0 }
  }

  #account(group: string): Account {
    let account = this.#accounts.get(group)
    if (account === undefined) {
      account = this.#accountOf(group)
      this.#accounts.set(group, account)
    }
    return account
  }

  #accountOf(group: string): Account {
    const { perGroup, mostEach, only } = this.#turns
    if (group === UNGROUPED) return { places: Number.POSITIVE_INFINITY, left: mostEach }
    const places =
      perGroup === null ? Number.POSITIVE_INFINITY : Math.max(0, perGroup - runningOf(this.#db, this.#queue, group))
    return { places, left: Math.min(mostEach, only === null ? mostEach : (only.get(group) ?? 0)) }
  }

  /** The range of groups to pass over that has this one. */
  #rangeWith(group: string): GroupRange | null {
    let [from, to] = [0, this.#passed.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if (byBytes(this.#passed[middle]!.first, group) <= 0) from = middle + 1
      else to = middle
    }
    const range = this.#passed[from - 1]
    return range !== undefined && byBytes(range.last, group) >= 0 ? range : null
  }
}
