/** What each worker has ended in the last minutes: in memory, from the same changes that charts count. */
import type { ChartMove } from '../../core/observe/chart-slot.ts'
import type { Instant } from '../../core/task.ts'

/** Runs of one worker that ended. */
export interface WorkerTotals {
  readonly completed: number
  /** Also those that are tried again. */
  readonly failed: number
}

/** What each worker has ended in the last minutes. */
export interface WorkerReading {
  /** The time over which runs are counted. */
  readonly seconds: number
  readonly byWorker: ReadonlyMap<string, WorkerTotals>
}

const SLOT = 5_000
const KEPT = 5 * 60_000
/** Further workers of a slot are not counted. */
const MOST_WORKERS = 1_000

export class WorkerCounts {
  readonly #slots = new Map<Instant, Map<string, { completed: number; failed: number }>>()

  /** A run that was cancelled, rescheduled or released is neither a success nor a failure. */
  count({ count, worker }: ChartMove, at: Instant, weight = 1): void {
    if (worker === undefined || (count !== 'completed' && count !== 'retried' && count !== 'died')) return
    const start = Math.floor(at / SLOT) * SLOT
    const slot = this.#slots.get(start) ?? new Map()
    this.#slots.set(start, slot)
    const counted = slot.get(worker) ?? { completed: 0, failed: 0 }
    if (!slot.has(worker) && slot.size >= MOST_WORKERS) return
    slot.set(worker, counted)
    counted[count === 'completed' ? 'completed' : 'failed'] += weight
  }

  /** Forgets what is older. */
  read(now: Instant): WorkerReading {
    const sums = new Map<string, WorkerTotals>()
    for (const [start, slot] of this.#slots) {
      if (start < now - KEPT) {
        this.#slots.delete(start)
        continue
      }
      for (const [worker, { completed, failed }] of slot) {
        const sum = sums.get(worker) ?? { completed: 0, failed: 0 }
        sums.set(worker, { completed: sum.completed + completed, failed: sum.failed + failed })
      }
    }
    return { seconds: KEPT / 1_000, byWorker: new Map([...sums].map(([worker, sum]) => [worker, rounded(sum)])) }
  }

  clear(): void {
    this.#slots.clear()
  }
}

/** A sampled change stands for several. */
const rounded = ({ completed, failed }: WorkerTotals): WorkerTotals => ({
  completed: Math.round(completed),
  failed: Math.round(failed),
})
