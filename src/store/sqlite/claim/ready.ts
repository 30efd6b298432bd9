/**
 * The first claimable tasks of a queue, in order. It walks only index entries that can be claimed: the requested types, priority by
 * priority, due tasks only. It reads about as many entries as it returns and a few more per line, however many other tasks wait.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../../core/task.ts'
import { prepared } from '../file/connection.ts'
import { type DueLevels, dueLevels } from './levels.ts'
import { type Candidate, inOrder, isGrouped, type Line, type LineKind, mayExpire } from './lines.ts'

const READY = `from holdfast_task indexed by holdfast_task_ready where status = 'pending' and queue = ?`
const IN_LINE = `${READY} and type = ? and line = ?`
const NEXT_LINE = `select line, priority ${READY} and type = ? and line > ? order by line, priority desc limit 1`
const NEXT_LEVEL = `select priority ${IN_LINE} and priority < ? order by priority desc limit 1`
/**
 * The next lower priority with a due task, and the first due time of the priorities skipped on the way. One statement that jumps along
 * the index skips 2,000 priorities in 3 ms; one query per priority took 150 ms.
 */
const LEVEL_BELOW = `${IN_LINE.replace('queue = ?', 'queue = ?1').replace('type = ?', 'type = ?2').replace('line = ?', 'line = ?3')} and priority < level.priority order by priority desc, available_at limit 1`
const NEXT_DUE_LEVEL = `
  with recursive level(priority, begins) as (
    select ?4, ?5 + 1
    union all
    select (select priority ${LEVEL_BELOW}), (select available_at ${LEVEL_BELOW}) from level where level.priority is not null and level.begins > ?5
  )
  select min(case when begins <= ?5 then priority end), min(case when begins > ?5 and priority < ?4 then begins end) from level`
/** Most queues have few priorities: up to this many are queried one by one. */
const FEW_LEVELS = 8
const CANDIDATES = `select key, available_at, id ${IN_LINE} and priority = ? and (available_at, id) > (?, ?) and available_at <= ? and (expires_at is null or expires_at > ?) order by available_at, id limit ?`
const LATER = `select available_at ${IN_LINE} and priority = ? and available_at > ? order by available_at limit 1`
const LIVE = `select 1 from holdfast_task indexed by holdfast_task_live where status = 'pending' and queue = ? and type = ? and line = ? and priority = ? and expires_at > ? limit 1`
const FIRST_TYPE = `select type ${READY} order by type limit 1`
const NEXT_TYPE = `select type ${READY} and type > ? order by type limit 1`

/** The part of a line that has been read at one priority. */
interface Read {
  readonly line: Line
  waiting: readonly Candidate[]
  /** The last candidate read: reading continues after it. */
  last: Candidate | null
  share: number
  isExhausted: boolean
}

/** The first `limit` tasks of these lines, which are of one priority. */
export type Pick = (lines: readonly Line[], limit: number) => readonly Candidate[]

export class Ready {
  readonly #db: DatabaseSync
  readonly #queue: string
  readonly #now: Instant
  #lines: Line[] = []
  #levels = 0
  /** The first due time of the priorities that were skipped. */
  #passed: Instant | null = null
  /** Used when any type may be claimed. */
  #due: DueLevels | null = null

  /** `types` null means any type, as many as fit in one look. */
  constructor(db: DatabaseSync, queue: string, types: readonly string[] | null, now: Instant) {
    this.#db = db
    this.#queue = queue
    this.#now = now
    if (types === null) {
      this.#due = dueLevels(db, queue, now)
      this.#passed = this.#due.later
      this.#lines = this.#due.levels.map((level) => ({ ...level, isOnly: true }))
      return
    }
    for (const type of typesToAsk(db, queue, types))
      for (let line = this.#lineBehind(type, -1); line !== undefined; line = this.#lineBehind(type, line.kind))
        this.#lines.push(line)
  }

  /** Asked before the first look. */
  get isGrouped(): boolean {
    return this.#lines.some(isGrouped)
  }

  #lineBehind(type: string, kind: LineKind | -1): Line | undefined {
    const found = prepared(this.#db, NEXT_LINE).get(this.#queue, type, kind) as unknown as
      | [LineKind, number]
      | undefined
    return found && { type, kind: found[0], priority: found[1], isOnly: false }
  }

  /** Makes the next look start after the levels that this one has seen. */
  turnOver(): void {
    this.#due?.turnOver()
  }

  /**
   * Keys of the first `limit` tasks, and the next instant at which one more becomes available: if there are fewer, or if it `mustKnowLater`.
   * `pick` chooses from the lines at one priority.
   */
  keys(limit: number, pick: Pick = this.first, mustKnowLater = false): { keys: number[]; later: Instant | null } {
    const keys: number[] = []
    let later: Instant | null = null
    while (this.#lines.length > 0 && (keys.length < limit || mustKnowLater)) {
      const level = this.#lines.reduce((most, { priority }) => Math.max(most, priority), Number.NEGATIVE_INFINITY)
      const lines = this.#lines.filter(({ priority }) => priority === level)
      if (keys.length < limit) for (const [key] of pick(lines, limit - keys.length)) keys.push(key)
      if (keys.length < limit || mustKnowLater) for (const line of lines) later = earlier(later, this.#later(line))
      for (const line of lines) this.#down(line)
      this.#lines = this.#lines.filter(({ priority }) => priority !== NONE)
    }
    return { keys, later: earlier(later, this.#passed ?? undefined) }
  }

  /** Reads a share of each line and merges the shares as far as the order is certain; then reads more of the lines that ran out. */
  readonly first: Pick = (lines, limit) => {
    const share = lines.length === 1 ? limit : Math.ceil((limit * 1.5) / lines.length) + 2
    const reads = lines.map((line): Read => ({ line, waiting: [], last: null, share, isExhausted: this.#isDead(line) }))
    const first: Candidate[] = []
    while (first.length < limit) {
      for (const read of reads) if (read.waiting.length === 0 && !read.isExhausted) this.#read(read)
      const certain = reads.flatMap(({ last, isExhausted }) => (last === null || isExhausted ? [] : [last]))
      const end = certain.length === 0 ? null : certain.reduce((a, b) => (inOrder(a, b) < 0 ? a : b))
      const merged: Candidate[] = []
      for (const read of reads) {
        const until = end === null ? read.waiting.length : countUntil(read.waiting, end)
        merged.push(...read.waiting.slice(0, until))
        read.waiting = read.waiting.slice(until)
      }
      if (merged.length === 0) break
      if (lines.length > 1) merged.sort(inOrder)
      first.push(...merged)
    }
    return first.length > limit ? first.slice(0, limit) : first
  }

  #read(read: Read): void {
    const { line, last, share } = read
    const [queue, now] = [this.#queue, this.#now]
    const [, at, id] = last ?? [0, Number.MIN_SAFE_INTEGER, '']
    read.waiting = prepared(this.#db, CANDIDATES).all(
      queue,
      line.type,
      line.kind,
      line.priority,
      at,
      id,
      now,
      now,
      share,
    ) as unknown as Candidate[]
    read.last = read.waiting.at(-1) ?? last
    read.isExhausted = read.waiting.length < share
    read.share = share * 2
  }

  /** True if everything in the line has expired: any number of expired tasks is skipped with one query. */
  #isDead(line: Line): boolean {
    const { type, kind, priority } = line
    return mayExpire(line) && one(this.#db, LIVE, this.#queue, type, kind, priority, this.#now) === undefined
  }

  #later({ type, kind, priority }: Line): Instant | undefined {
    return one(this.#db, LATER, this.#queue, type, kind, priority, this.#now)
  }

  #down(line: Line): void {
    const { type, kind, priority } = line
    if (line.isOnly || ++this.#levels <= FEW_LEVELS) {
      const below = line.isOnly ? undefined : one<number>(this.#db, NEXT_LEVEL, this.#queue, type, kind, priority)
      line.priority = below ?? NONE
      return
    }
    const [below, later] = prepared(this.#db, NEXT_DUE_LEVEL).get(
      this.#queue,
      type,
      kind,
      priority,
      this.#now,
    ) as unknown as [number | null, Instant | null]
    line.priority = below ?? NONE
    this.#passed = earlier(this.#passed, later ?? undefined)
  }
}

/** The priority of a line that is at its end. */
const NONE = Number.NEGATIVE_INFINITY

/** Usually few types wait, so listing them takes fewer queries than asking for each requested type. */
const typesToAsk = (db: DatabaseSync, queue: string, wanted: readonly string[]): Iterable<string> => {
  const asked = new Set(wanted)
  const found: string[] = []
  let type = one<string>(db, FIRST_TYPE, queue)
  for (let seen = 1; type !== undefined; seen++) {
    if (asked.has(type)) found.push(type)
    if (seen >= asked.size) return asked
    type = one<string>(db, NEXT_TYPE, queue, type)
  }
  return found
}

/** How many of these ordered candidates are not after `end`. */
const countUntil = (candidates: readonly Candidate[], end: Candidate): number => {
  let [from, to] = [0, candidates.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (inOrder(candidates[middle]!, end) <= 0) from = middle + 1
    else to = middle
  }
  return from
}

export const one = <T>(db: DatabaseSync, sql: string, ...values: (string | number)[]): T | undefined =>
  (prepared(db, sql).get(...values) as unknown as [T] | undefined)?.[0]

export const earlier = (a: Instant | null, b: Instant | undefined): Instant | null =>
  b === undefined ? a : a === null ? b : Math.min(a, b)
