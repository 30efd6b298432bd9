/** The producer and operator of the long campaign: submits all types, repeats keys, cancels, retries and signals, and writes down what it was told. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isHoldfastError, type SubmitManyItem } from '../../../src/index.ts'
import { openWitness } from '../../../src/testing/index.ts'
import { chance } from '../seed.ts'
import { open, planOf, say } from './child.ts'

export interface FaultProducerPlan {
  readonly address: string
  readonly logs: string
  readonly seed: number
  /** It submits while fewer than these are ready. */
  readonly backlog: number
}

const { address, logs, seed, backlog } = planOf<FaultProducerPlan>()
const { between, pick, roll } = chance(seed)
const witness = openWitness(logs)
process.on('unhandledRejection', witness.unhandled)
const client = await open(address)

const retried = { retryPolicy: { base: '50ms', max: '500ms' } } as const
const KINDS: readonly ((n: number) => SubmitManyItem<string>)[] = [
  (n) => ({ type: 'quick', input: { n, text: 'é'.repeat(between(0, 200)) } }),
  (n) => ({ type: 'quick', input: n, priority: between(0, 3), delay: { milliseconds: between(0, 2_000) } }),
  (n) => ({ type: 'quick', input: { of: n >> 1 }, idempotencyKey: `order-${seed}-${n >> 1}` }),
  () => ({ type: 'slow', input: null, queue: 'media', maxRetries: null, ...retried }),
  () => ({ type: 'moody', input: null, maxRetries: 4, ...retried }),
  () => ({ type: 'stubborn', input: null, queue: 'media', maxRetries: null, ...retried }),
  () => ({ type: 'stubborn', input: 1, queue: 'media', maxRetries: null, priority: 1, ...retried }),
  () => ({ type: 'stubborn', input: 2, queue: 'media', maxRetries: null, priority: 2, ...retried }),
  () => ({ type: 'stubborn', input: 'x'.repeat(20_000), queue: 'media', maxRetries: null, ...retried }),
  () => ({ type: 'grouped', input: null, queue: 'mail', group: `group-${between(0, 9)}`, maxRetries: 8, ...retried }),
  (n) => ({ type: 'stepped', input: n, queue: 'mail', maxRetries: null, ...retried }),
  () => ({ type: 'waiting', input: null, queue: 'mail', maxRetries: null, ...retried }),
  (n) => ({ type: 'parent', input: n, maxRetries: null, ...retried }),
]
const POISON: SubmitManyItem<string> = { type: 'poison', input: null, maxRetries: 2, ...retried }

/** What operators do may be refused: the task has moved on, or the store is away. Any other error is a fault of ours. */
const asked = async (work: Promise<unknown>): Promise<void> => {
  await work.catch((error: unknown) => {
    if (!isHoldfastError(error)) witness.unhandled(error)
  })
}

let isOver = false
process.once('SIGTERM', () => {
  isOver = true
})
say('ready')
let n = 0
while (!isOver) {
  await sleep(50)
  const waiting = await client.count({ status: 'ready' }).catch(() => null)
  if (waiting === null || waiting.count >= backlog) continue
  const items = Array.from({ length: 20 }, () => (roll() < 0.002 ? POISON : KINDS[n++ % KINDS.length]!(n)))
  const results = await witness.submit(() => client.submitMany(items), items.length).catch(() => [])
  for (const result of results) {
    if (!result.ok) continue
    const { id, type } = result.task
    // A signal may come before its wait does, and none comes to some.
    if (type === 'waiting' && roll() < 0.8) await asked(client.signal(id, 'word', { of: id }))
    if (roll() < 0.02) await asked(client.cancel(id))
  }
  const one = pick(KINDS)(n)
  const { type, input, ...options } = one
  await witness.submit(() => client.submit(type, input, options)).catch(() => {})
}
await client.close()
say('stopped')
