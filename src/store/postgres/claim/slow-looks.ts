/**
 * Limits looks from the front once they have become slow. While an old transaction is open anywhere in the database, nothing claimed since
 * can be vacuumed, and a look from the front passes all those dead index entries. Between two such looks this process waits for several
 * times their duration, and meanwhile looks only at the levels that it knows, from some seconds before the last look. Tasks elsewhere are
 * found by the next look from the front.
 */
import type { Instant, TaskRecord } from '../../../core/task.ts'
import type { ClaimRequest } from '../../store.ts'
import { type Levels, lineOf } from './cursors.ts'

/** Milliseconds on the server, without the round trip. */
const SLOW = 15
/** Rest for this many durations of a look, so that looks from the front take at most a fifth of the time. */
const REST = 4
const LONGEST_REST = 5_000
/** So that tasks stamped before the last look and committed after it are not missed. */
const MARGIN = 5_000
const MOST_LEVELS = 500

interface Level {
  readonly type: string
  readonly line: number
  readonly priority: number
  begins: Instant
}

interface Known {
  readonly queue: string
  readonly types: ReadonlySet<string> | null
  readonly levels: Map<string, Level>
  /** Monotonic: when the last look from the front ended. */
  lookedAt: number
  cost: number
  next: Instant | null
}

export interface Looked {
  readonly leased: readonly TaskRecord[]
  /** The server's time. */
  readonly now: Instant
  /** For a look from the front: its duration, the levels if it returned them, and the time of the next look if it leased nothing. */
  readonly front?: { readonly cost: number; readonly levels: Levels | null; readonly next: Instant | null }
}

const nameOf = (type: string, line: number, priority: number): string => `${type} ${line} ${priority}`

export class SlowLooks {
  readonly #known = new Map<string, Known>()

  /** Where to look instead of from the front, and when a look from the front is due again; null means from the front. */
  begin(want: ClaimRequest): { readonly levels: Levels; readonly next: (now: Instant) => Instant } | null {
    const known = this.#known.get(keyOf(want))
    if (known === undefined || known.levels.size === 0) return null
    const left = known.lookedAt + Math.min(known.cost * REST, LONGEST_REST) - performance.now()
    if (left <= 0) return null
    const levels = [...known.levels.values()].sort((a, b) => b.priority - a.priority)
    return {
      levels: {
        types: levels.map(({ type }) => type),
        lines: levels.map(({ line }) => line),
        priorities: levels.map(({ priority }) => priority),
        begins: levels.map(({ begins }) => begins),
      },
      next: (now) => Math.min(known.next ?? Number.POSITIVE_INFINITY, now + Math.ceil(left)),
    }
  }

  ended(want: ClaimRequest, { leased, now, front }: Looked): void {
    const key = keyOf(want)
    if (front !== undefined && front.cost < SLOW) {
      this.#known.delete(key)
      return
    }
    const known = this.#known.get(key) ?? newKnown(want)
    this.#known.set(key, known)
    if (front !== undefined)
      Object.assign(known, {
        lookedAt: performance.now(),
        cost: front.cost,
        next: leased.length > 0 ? null : front.next,
      })
    const { types, lines, priorities, begins } = front?.levels ?? {
      types: [],
      lines: [],
      priorities: [],
      begins: [],
    }
    // Where something was leased there may be more. There may be too many levels to know them all, so these come first.
    for (const task of leased)
      add(known, { type: task.type, line: lineOf(task), priority: task.priority, begins: task.availableAt })
    for (const [i, type] of types.entries())
      add(known, { type, line: lines[i]!, priority: priorities[i]!, begins: Math.min(begins[i]!, now - MARGIN) })
    // Fewer than requested: nothing due is left.
    const isDone = leased.length < want.limit
    const last = new Map<string, Instant>()
    for (const task of leased) last.set(nameOf(task.type, lineOf(task), task.priority), task.availableAt)
    for (const [name, level] of known.levels) {
      const end = isDone ? now : last.get(name)
      if (end !== undefined) level.begins = Math.max(level.begins, Math.min(end, now - MARGIN))
    }
  }

  /** This process has inserted these tasks, so their levels are known and begin no later than these. */
  inserted(tasks: readonly TaskRecord[]): void {
    for (const known of this.#known.values())
      for (const task of tasks) {
        const { queue, type, priority, availableAt, createdAt } = task
        if (queue !== known.queue || (known.types !== null && !known.types.has(type))) continue
        add(known, { type, line: lineOf(task), priority, begins: Math.min(availableAt, createdAt - MARGIN) })
      }
  }

  /** This process has made tasks ready at unknown levels: the next look from the front comes sooner. */
  changed(): void {
    for (const known of this.#known.values()) known.lookedAt -= (known.cost * REST) / 2
  }
}

const keyOf = ({ queue, types }: ClaimRequest): string => JSON.stringify([queue, types])

const newKnown = ({ queue, types }: ClaimRequest): Known => ({
  queue,
  types: types === null ? null : new Set(types),
  levels: new Map(),
  lookedAt: 0,
  cost: 0,
  next: null,
})

const add = ({ levels }: Known, level: Level): void => {
  const name = nameOf(level.type, level.line, level.priority)
  const there = levels.get(name)
  if (there !== undefined) there.begins = Math.min(there.begins, level.begins)
  else if (levels.size < MOST_LEVELS) levels.set(name, level)
}

/** The same for overdue tasks: those that became overdue before the last look were reported by it. */
export class SlowDue {
  #lookedAt = Number.NEGATIVE_INFINITY
  #cost = 0

  /** The instant from which to look; null means from the front. `offset` is how far the server's clock is ahead of the monotonic one. */
  begin(offset: number | null): Instant | null {
    if (this.#cost < SLOW || offset === null) return null
    const isTime = performance.now() - this.#lookedAt > Math.min(this.#cost * REST, LONGEST_REST)
    return isTime ? null : Math.floor(this.#lookedAt + offset) - MARGIN
  }

  /** A look from the front that began at `began` has ended. */
  ended(began: number): void {
    this.#cost = performance.now() - began
    this.#lookedAt = began
  }
}
