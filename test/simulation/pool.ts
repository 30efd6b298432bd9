/** Runs seeds on several threads. Each seed is independent of the others, so their order does not matter. */
import { Worker } from 'node:worker_threads'
import type { ProgramText, Report } from './seed-thread.ts'
import type { Order, Outcome } from './simulation.ts'

/** A seed takes a fraction of a second, and some seconds on a busy machine. In ticks, because a process that was suspended has none. */
const LONGEST_SEED = { ticks: 120, tick: 1_000 }

/** Calls `done` for each outcome as it comes; stops early when `done` returns false. Rejects if the simulator itself fails. */
export const runOrders = async (
  program: ProgramText,
  orders: Iterable<Order>,
  jobs: number,
  done: (outcome: Outcome, order: Order) => boolean,
): Promise<void> => {
  const waiting = orders[Symbol.iterator]()
  let isOver = false
  const work = (): Promise<void> =>
    new Promise((finished, failed) => {
      let late: NodeJS.Timeout | undefined
      const thread = new Worker(new URL('./seed-thread.ts', import.meta.url), {
        workerData: program,
        // A seed leaves little behind: most of it should die young.
        resourceLimits: { maxYoungGenerationSizeMb: 64 },
      })
      const fail = (why: string): void => {
        isOver = true
        clearInterval(late)
        void thread.terminate()
        failed(new Error(why))
      }
      const next = (): void => {
        clearInterval(late)
        const order = isOver ? { done: true as const } : waiting.next()
        if (order.done) {
          void thread.terminate()
          finished()
          return
        }
        thread.postMessage(order.value)
        const { seed, profile } = order.value
        let ticks = 0
        late = setInterval(() => {
          if (++ticks >= LONGEST_SEED.ticks) fail(`seed ${seed} of ${profile} does not end`)
        }, LONGEST_SEED.tick)
      }
      thread.on('message', (report: Report) => {
        if ('broken' in report) {
          fail(`seed ${report.order.seed} of ${report.order.profile}: ${report.broken}`)
          return
        }
        if (!done(report.outcome, report.order)) isOver = true
        next()
      })
      thread.on('error', failed)
      next()
    })
  await Promise.all(Array.from({ length: jobs }, work))
}
