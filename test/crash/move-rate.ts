/** How fast everything goes from one store to another. */
import { connect, silentLogger } from '../../src/index.ts'
import { openAt } from './address.ts'

const CHUNK = 10_000

/** Tasks a second, and how many arrived. Every tenth has a key. */
export const moveRate = async (from: string, to: string, tasks: number): Promise<{ rate: number; arrived: number }> => {
  const options = { logger: silentLogger, name: 'test' }
  const [old, fresh] = [await connect(await openAt(from), options), await connect(await openAt(to), options)]
  for (let first = 0; first < tasks; first += CHUNK) {
    await old.submitMany(
      Array.from({ length: Math.min(CHUNK, tasks - first) }, (_, i) => ({
        type: 'work',
        input: { n: first + i, text: 'x'.repeat(100) },
        ...(i % 10 === 0 ? { idempotencyKey: `key-${first + i}` } : null),
      })),
    )
  }
  const begun = performance.now()
  await old.moveTo(fresh)
  const took = performance.now() - begun
  const { count } = await fresh.count({ status: 'ready' })
  await Promise.all([old.close(), fresh.close()])
  return { rate: tasks / (took / 1_000), arrived: count }
}
