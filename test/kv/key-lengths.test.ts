/** Servers that store objects as files allow 255 bytes between two slashes, and S3 allows 1,024 in all. */
import { expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'

/** The longest part of a key, and the longest key, of everything that tasks of this queue and type leave. */
const longest = async (queue: string, type: string): Promise<{ part: number; key: number }> => {
  const map = new KeyValueMap()
  const seen = new Set<string>()
  const kv = new MemoryKeyValue(map)
  const { create } = kv
  kv.create = (key, value) => {
    seen.add(key)
    return create.call(kv, key, value)
  }
  const store = new KvStore(kv, { capabilities: [], leaseTtl: 5_000 })
  const client = await connect(store, { logger: silentLogger })
  const items = Array.from({ length: 40 }, (_, n) => ({ type, input: n, idempotencyKey: 'k'.repeat(500) + n }))
  await client.submitMany(items, { queue, ttl: '30d', priority: -1000 })
  await client.submit(type, 'x'.repeat(300_000), { queue, delay: '1h' })
  await client.queue(queue).pause()
  await client.queue(queue).resume()
  const worker = client.worker({ queues: [queue] }).handle(type, async () => null)
  await worker.drain()
  const [first] = (await client.list({ status: 'completed' })).tasks
  await client.delete(first!.id)
  await client.close()
  const parts = [...seen].flatMap((key) => key.split('/'))
  return { part: Math.max(...parts.map(({ length }) => length)), key: Math.max(...[...seen].map((key) => key.length)) }
}

test('names of 128 letters, digits, - and _ fit everywhere', async () => {
  const { part, key } = await longest('q'.repeat(128), 't'.repeat(128))
  expect(part).toBeLessThanOrEqual(255)
  // With a prefix of 150 there is still room.
  expect(key + 150).toBeLessThanOrEqual(1_024)
})

test('with three for each dot, colon and slash, queues of 240 and types of 150 fit 255 a part', async () => {
  const { part } = await longest(`${'q'.repeat(60)}${'.'.repeat(60)}`, `${'t'.repeat(30)}${':'.repeat(40)}`)
  expect(part).toBeLessThanOrEqual(255)
})
