/** Each second of a store in a few numbers: how many moves of each kind, how long tasks waited and ran. */
import type { TaskChange } from '../index.ts'

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
/** Samples of one second: beyond it the spread is that of the first ones. */
const MOST_SAMPLES = 5_000

export class Ticker {
  #past: Tick[] = []
  #moves: Record<string, number> = {}
  #waits: number[] = []
  #durations: number[] = []
  #lastAt = 0

  get past(): readonly Tick[] {
    return this.#past
  }

  /** What lies before a gap would look like what came just before. */
  restart(now: number): void {
    if (now - this.#lastAt > 5_000) this.#past = []
    this.#clear()
  }

  count({ entry, task, weight = 1 }: TaskChange): void {
    this.#moves[entry.move] = (this.#moves[entry.move] ?? 0) + weight
    // Of a task that has moved on since, `availableAt` and `startedAt` may be those of a later run.
    const isLast = task.revision === entry.n
    if (entry.move === 'claim') {
      const next = task.history.find(({ n }) => n === entry.n + 1)
      if (isLast || next?.availableAt === undefined) sample(this.#waits, entry.at - task.availableAt)
    } else if (isLast && task.startedAt !== null && ENDS.has(entry.move)) {
      sample(this.#durations, entry.at - task.startedAt)
    }
  }

  /** The second that has passed. */
  turn(now: number): Tick {
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

  #clear(): void {
    this.#moves = {}
    this.#waits = []
    this.#durations = []
  }
}

const ENDS: ReadonlySet<string> = new Set(['complete', 'fail', 'time-out', 'reschedule'])

const sample = (samples: number[], value: number): void => {
  if (samples.length < MOST_SAMPLES) samples.push(Math.max(0, value))
}

const spreadOf = (samples: number[]): Spread | null => {
  if (samples.length === 0) return null
  samples.sort((a, b) => a - b)
  const at = (part: number): number => samples[Math.min(samples.length - 1, Math.floor(samples.length * part))]!
  return { p50: at(0.5), p95: at(0.95), max: samples.at(-1)! }
}
