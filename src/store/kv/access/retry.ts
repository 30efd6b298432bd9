/** Repeats calls that failed because contact with the server was lost or the server was overloaded. */
import { isConflict, isContactLost } from '../../../core/errors.ts'
import { fullJitter } from '../../../core/values/jitter.ts'
import { AdaptiveConcurrency, type Priority } from './adaptive-concurrency.ts'

const TRIES = 20
const WAITS = { first: 40, longest: 1_000 }
/** No further try starts this long after the first failure. The caller may retry on top of that. */
const PATIENCE = 12_000
/** A renewal is not repeated for longer than this: its end of the lease is soon out of date, and the next renewal writes a new one. */
const URGENT_PATIENCE = 1_500

export class Retry {
  readonly concurrency = new AdaptiveConcurrency({ start: 32, most: 64 })

  async run<T>(call: () => Promise<T>, priority: Priority = 'last'): Promise<T> {
    // Measured from the first failure, so that waiting for a free place does not count.
    let failedAt: number | null = null
    const patience = priority === 'urgent' ? URGENT_PATIENCE : PATIENCE
    for (let tries = 1; ; tries++) {
      try {
        return await this.concurrency.run(call, priority === 'last' && tries > 1 ? 'next' : priority)
      } catch (error) {
        if (!isContactLost(error)) throw error
        // Two writers that meet on one key are no sign of overload.
        if (!isConflict(error)) this.concurrency.failed()
        failedAt ??= performance.now()
        if (tries === TRIES || performance.now() - failedAt > patience) throw error
        await sleep(fullJitter(WAITS, tries, Math.random()))
      }
    }
  }
}

export const sleep = (delay: number): Promise<void> => new Promise((done) => setTimeout(done, delay))
