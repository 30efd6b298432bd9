/** One group with a long line in front, and others with a few tasks each: how much later they end than with perfect turns. */
import type { Client } from '../src/index.ts'

export interface FairShares {
  /** Tasks of the group in front. */
  readonly long: number
  /** The other groups. */
  readonly others: number
  /** Tasks of each of them. */
  readonly each: number
  readonly concurrency: number
  /** Milliseconds that a task takes. */
  readonly takes: number
  /** Default true. Otherwise tasks are claimed in the order in which they were submitted. */
  readonly fair?: boolean
}

export interface Shares {
  /** Milliseconds until the last task of each of the other groups has ended: the latest, and the median. */
  readonly latest: number
  readonly median: number
  /** The same with perfect turns: each group has one task in every round, and no slot is ever free. */
  readonly perfect: number
  /** Tasks of the group in front that ended before them. */
  readonly longBefore: number
}

const BATCH = 5_000

export const fairShares = async (client: Client, queue: string, plan: FairShares): Promise<Shares> => {
  const { long, others, each, concurrency, takes, fair = true } = plan
  await client.queue(queue).limit(fair ? { fair } : null)
  const submit = async (count: number, groupOf: (i: number) => string): Promise<void> => {
    for (let i = 0; i < count; i += BATCH)
      await client.submitMany(
        Array.from({ length: Math.min(BATCH, count - i) }, (_, j) => ({
          type: 'work',
          input: null,
          queue,
          group: groupOf(i + j),
        })),
      )
  }
  await submit(long, () => 'long')
  await submit(others * each, (i) => `other-${i % others}`)
  const left = new Map(Array.from({ length: others }, (_, i) => [`other-${i}`, each]))
  const ended: number[] = []
  let [begun, longBefore, running, ran] = [0, 0, 0, 0]
  const allEnded = Promise.withResolvers<void>()
  const worker = client.worker({ concurrency, queues: [queue] }).handle('work', async (_, { task }) => {
    const at = performance.now()
    begun ||= at
    await new Promise((done) => setTimeout(done, takes))
    const now = performance.now()
    running += now - at
    ran++
    const group = task.group!
    if (group === 'long') longBefore++
    else {
      left.set(group, left.get(group)! - 1)
      if (left.get(group) === 0) ended.push(now - begun)
      if (ended.length === others) allEnded.resolve()
    }
    return null
  })
  const run = worker.run({ signals: false })
  await allEnded.promise
  const before = longBefore
  await worker.stop()
  await run
  // Tasks take a little longer than they were told to, and with perfect turns they would, too.
  const perfect = (((others + 1) * each) / concurrency) * (running / ran)
  return { latest: ended.at(-1)!, median: ended[Math.floor(others / 2)]!, perfect, longBefore: before }
}
