/** Workers beside each other on one queue in a bucket, 30 ms away, in virtual time: what they reach does not depend on this machine. */
import { expect, test } from 'vitest'
import { volume } from '../volume.ts'
import { bundled, compiled } from './bundle.ts'
import { drain } from './s3-drain.ts'

const TASKS = 5_000
const WORKERS = [1, 2, 4, 8] as const
const ROUNDS = volume(1, 5)

const program = compiled(await bundled())

test.each(Array.from({ length: ROUNDS }, (_, n) => n + 1))(
  'on S3 more workers are never slower, one runs 400 tasks a second and four 800, and no task is lost or charged a retry (round %i)',
  { timeout: 600_000 },
  async (seed) => {
    const rates: number[] = []
    for (const workers of WORKERS) {
      const { perSecond, runs, tasks } = await drain(program, { workers, tasks: TASKS, concurrency: 50, seed })
      expect(tasks).toHaveLength(TASKS)
      expect(tasks.filter(({ status, retryCount }) => status !== 'completed' || retryCount > 0)).toEqual([])
      // Every task has started once.
      expect(runs.reduce((sum, count) => sum + count, 0)).toBe(TASKS)
      rates.push(perSecond)
    }
    console.log(`S3 at 30 ms, tasks a second by ${WORKERS.join(', ')} workers: ${rates.join(', ')}`)
    expect(rates[0]).toBeGreaterThanOrEqual(400)
    expect(rates[2]).toBeGreaterThanOrEqual(800)
    expect(rates).toEqual(rates.toSorted((a, b) => a - b))
  },
)
