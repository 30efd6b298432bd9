/** Repeats calls that failed because contact with the server was lost or the server was overloaded. */
import { type HoldfastError, isContactLost } from '../../../core/errors.ts'
import { AdaptiveConcurrency, type Priority } from './adaptive-concurrency.ts'

const TRIES = 20
const FIRST_WAIT = 40
const LONGEST_WAIT = 1_000
/** No further try starts this long after the first failure. The caller may retry on top of that. */
const PATIENCE = 12_000

export class Retry {
  readonly concurrency = new AdaptiveConcurrency({ start: 32, most: 64 })

  async run<T>(call: () => Promise<T>, priority: Priority = 'last'): Promise<T> {
    // Measured from the first failure, so that waiting for a free place does not count.
    let failedAt: number | null = null
    for (let tries = 1; ; tries++) {
      try {
        return await this.concurrency.run(call, priority === 'last' && tries > 1 ? 'next' : priority)
      } catch (error) {
        if (!isContactLost(error)) throw error
        if (!isConflict(error)) this.concurrency.failed()
        failedAt ??= performance.now()
        if (tries === TRIES || performance.now() - failedAt > PATIENCE) throw error
        await sleep(Math.random() * Math.min(FIRST_WAIT * 2 ** tries, LONGEST_WAIT))
      }
    }
  }
}

/** Two writers met on one key and the server asks one to retry. This is not a sign of overload. */
const isConflict = (error: unknown): boolean => (error as HoldfastError).details['isConflict'] === true

export const sleep = (delay: number): Promise<void> => new Promise((done) => setTimeout(done, delay))
