/** Summarises each second of a store: the number of moves of each kind, and how long tasks waited and ran. */
import { RUN_ENDS, type TaskChange } from '../../index.ts'

interface Spread {
  readonly p50: number
  readonly p95: number
  readonly max: number
}

export interface Tick {
  /** The end of the second. */
  readonly at: number
  readonly moves: Readonly<Record<string, number>>
  readonly wait: Spread | null
  readonly duration: Spread | null
}

const KEPT = 300
/** Polls of a busy store are at most this many seconds apart. */
const MOST_SPREAD = 10
/** Maximum number of samples per second; later ones do not change the percentiles. */
const MOST_SAMPLES = 5_000

export class Ticker {
  #past: Tick[] = []
  #moves: Record<string, number> = {}
  /** Estimates for a store so busy that it is sampled. */
  #estimated: Record<string, number> = {}
  #estimatedAt = 0
  /** Future seconds, with what is already known of them. */
  #later: Record<string, number>[] = []
  #waits: number[] = []
  #durations: number[] = []
  #lastAt = 0

  get past(): readonly Tick[] {
    return this.#past
  }

  /** Drops seconds before a gap, which would look adjacent. */
  restart(now: number): void {
    if (now - this.#lastAt > 5_000) this.#past = []
    this.#estimated = {}
    this.#estimatedAt = now
    this.#later = []
    this.#clear()
  }

  count({ entry, task, weight }: TaskChange): void {
    add(weight === undefined ? this.#moves : this.#estimated, entry.move, weight ?? 1)
    // If the task has changed since, `availableAt` and `startedAt` may belong to a later run.
    const isLast = task.revision === entry.n
    if (entry.move === 'claim') {
      const next = task.history.find(({ n }) => n === entry.n + 1)
      if (isLast || next?.availableAt === undefined) sample(this.#waits, entry.at - task.availableAt)
    } else if (isLast && task.startedAt !== null && RUN_ENDS.has(entry.move)) {
      sample(this.#durations, entry.at - task.startedAt)
    }
  }

  /** The second that just ended. */
  turn(now: number): Tick {
    this.#spread(now)
    for (const [move, n] of Object.entries(this.#later.shift() ?? {})) add(this.#moves, move, n)
    const tick: Tick = {
      at: now,
      moves: Object.fromEntries(Object.entries(this.#moves).map(([move, n]) => [move, Math.round(n)])),
      wait: spreadOf(this.#waits),
      duration: spreadOf(this.#durations),
    }
    this.#past.push(tick)
    if (this.#past.length > KEPT) this.#past.shift()
    this.#lastAt = now
    this.#clear()
    return tick
  }

  /** Estimates cover the time since the last poll: they are spread over this second and the next to avoid a false peak. */
  #spread(now: number): void {
    const moves = Object.entries(this.#estimated)
    if (moves.length === 0) return
    const seconds = Math.min(MOST_SPREAD, Math.max(1, Math.round((now - this.#estimatedAt) / 1_000)))
    for (let n = 0; n < seconds; n++) {
      const second = this.#later[n] ?? {}
      this.#later[n] = second
      for (const [move, count] of moves) add(second, move, count / seconds)
    }
    this.#estimated = {}
    this.#estimatedAt = now
  }

  #clear(): void {
    this.#moves = {}
    this.#waits = []
    this.#durations = []
  }
}

const add = (moves: Record<string, number>, move: string, count: number): void => {
  moves[move] = (moves[move] ?? 0) + count
}

const sample = (samples: number[], value: number): void => {
  if (samples.length < MOST_SAMPLES) samples.push(Math.max(0, value))
}

const spreadOf = (samples: number[]): Spread | null => {
  if (samples.length === 0) return null
  samples.sort((a, b) => a - b)
  const at = (part: number): number => samples[Math.min(samples.length - 1, Math.floor(samples.length * part))]!
  return { p50: at(0.5), p95: at(0.95), max: samples.at(-1)! }
}
