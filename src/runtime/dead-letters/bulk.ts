/** Bulk operations on dead letters, carried out batch by batch. */
import { type HoldfastError, isContactLost } from '../../core/errors.ts'
import { Task } from '../../core/observe/task-view.ts'
import type { TaskRecord } from '../../core/task.ts'
import type { Session } from '../session.ts'
import type { EachResult } from '../tasks/move-each.ts'
import { Pace } from './pace.ts'
import type { Letter, Selection } from './selection.ts'

/** How many dead letters a call may change, and how it is watched and stopped. */
export interface BulkOptions {
  /** Only report what would be affected. */
  readonly dryRun?: boolean
  /** Scan at most this many dead letters. Default 100,000. */
  readonly cap?: number
  /** Stops between two batches; what is done stays done. */
  readonly signal?: AbortSignal
  /** Called after each batch. */
  readonly onProgress?: (done: number) => void
}

/** The result of a change of many dead letters. */
export interface BulkReport {
  /** How many dead letters matched. */
  readonly matched: number
  /** The scan ended at the cap, so there may be more. */
  readonly capped: boolean
  /** The first ten. */
  readonly sample: readonly Task[]
  /** `store`: contact was lost; the same call continues where this one ended. */
  readonly stopped: 'canary' | 'aborted' | 'store' | null
}

export const BATCH = 500
const SAMPLE = 10

/** The loop of every bulk operation: batch by batch, rate-limited, until the end or a reason to stop. */
export class Bulk {
  readonly #letters: Selection
  readonly #pace: Pace
  readonly #options: BulkOptions
  readonly #sample: Task[] = []
  #matched = 0
  #stopped: BulkReport['stopped'] = null

  constructor(session: Session, letters: Selection, options: BulkOptions, rate?: number) {
    this.#letters = letters
    this.#pace = new Pace(session.clock, rate)
    this.#options = options
  }

  get report(): BulkReport {
    return {
      matched: this.#matched,
      capped: this.#letters.isCapped,
      sample: this.#sample,
      stopped: this.#stopped,
    }
  }

  stop(reason: NonNullable<BulkReport['stopped']>): void {
    this.#stopped ??= reason
  }

  /** Counts without changing anything. */
  async count(): Promise<BulkReport> {
    for (let batch = await this.#letters.next(BATCH); batch.length > 0; batch = await this.#letters.next(BATCH))
      this.#see(batch)
    return this.report
  }

  /** Moves up to `most` more. Returns false if nothing is left or the operation has to stop. */
  async step<Result extends { readonly id: string; readonly error?: HoldfastError } | EachResult>(
    most: number,
    move: (dead: readonly TaskRecord[]) => Promise<readonly Result[]>,
    results: (Result | { readonly id: string; readonly error: HoldfastError })[],
  ): Promise<boolean> {
    if (this.#options.signal?.aborted) this.stop('aborted')
    if (this.#stopped !== null) return false
    const batch = await this.#letters.next(Math.min(most, this.#pace.batch))
    if (batch.length === 0) return false
    this.#see(batch)
    await this.#pace.wait(batch.length, this.#options.signal)
    const moved = await move(batch.flatMap((letter) => ('record' in letter ? [letter.record] : [])))
    results.push(...batch.filter((letter) => 'error' in letter), ...moved)
    if (moved.some((result) => 'error' in result && isContactLost(result.error))) this.stop('store')
    this.#options.onProgress?.(this.#matched)
    return true
  }

  #see(batch: readonly Letter[]): void {
    this.#matched += batch.length
    for (const letter of batch)
      if ('record' in letter && this.#sample.length < SAMPLE) this.#sample.push(new Task(letter.record))
  }
}
