/**
 * Remembers where the last claim of a queue ended. While a backlog is drained, a claim resumes there instead of starting at the front,
 * where it would pass the dead index entries of everything claimed since the last vacuum. A cursor is only an optimisation and expires:
 * tasks that other processes put in front are seen after RESUME_FOR at the latest, those of this process at once.
 */
import type { TaskRecord } from '../../../core/task.ts'
import type { ClaimRequest } from '../../store.ts'

/** The part of the index in which a task waits: see migrations/5-levels.ts. */
export const lineOf = ({ expiresAt, group }: Pick<TaskRecord, 'expiresAt' | 'group'>): number =>
  (expiresAt === null ? 0 : 1) + (group === null ? 0 : 2)

/** Parallel lists, highest priority first, in the form of the claim function's parameters and result. */
export interface Levels {
  readonly types: readonly string[]
  readonly lines: readonly number[]
  readonly priorities: readonly number[]
  readonly begins: readonly number[]
}

interface Cursor {
  readonly levels: Levels
  /** Monotonic: when the claim that found the levels began. */
  readonly foundAt: number
}

const RESUME_FOR = 250

export class ClaimCursors {
  readonly #cursors = new Map<string, Cursor>()
  #forgotten = 0

  /** Call it when a claim begins. */
  begin(want: ClaimRequest): ClaimProgress {
    const key = JSON.stringify([want.queue, want.types])
    const known = this.#cursors.get(key)
    const began = performance.now()
    // A claim with an explicit time asks about that time, not about now.
    const resumed = known && want.now === null && began - known.foundAt < RESUME_FOR ? known : null
    const forgotten = this.#forgotten
    return {
      levels: resumed?.levels ?? null,
      end: (leased, found) => {
        const isFull = leased.length === want.limit && want.now === null
        if (!isFull || found === null || forgotten !== this.#forgotten) this.#cursors.delete(key)
        else this.#cursors.set(key, { levels: after(found, leased), foundAt: resumed?.foundAt ?? began })
      },
    }
  }

  forget(): void {
    this.#forgotten++
    this.#cursors.clear()
  }
}

export interface ClaimProgress {
  /** Where to resume; null means from the front. */
  readonly levels: Levels | null
  /** `found` are the levels from which these tasks were leased. */
  end(leased: readonly TaskRecord[], found: Levels | null): void
}

const after = (levels: Levels, leased: readonly TaskRecord[]): Levels => {
  const last = new Map<string, number>()
  for (const task of leased) {
    const { type, priority, availableAt } = task
    const level = `${type} ${lineOf(task)} ${priority}`
    if ((last.get(level) ?? Number.NEGATIVE_INFINITY) < availableAt) last.set(level, availableAt)
  }
  const begins = levels.begins.map(
    (begin, i) => last.get(`${levels.types[i]} ${levels.lines[i]} ${levels.priorities[i]}`) ?? begin,
  )
  return { ...levels, begins }
}
