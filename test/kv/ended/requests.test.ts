/** Requests for queries about ended tasks, with and without the index. Prints the table of docs/stores/s3.md. */
import { beforeAll, expect, test } from 'vitest'
import { connect, silentLogger } from '../../../src/index.ts'
import { report } from '../../crash/seed.ts'
import { openKvInMemory } from '../open.ts'
import { CountingKeyValue } from '../places/counting-key-value.ts'
import { KeyValueMap, MemoryKeyValue } from '../places/memory-key-value.ts'
import { ENDED, keepMany, QUESTIONS } from './questions.ts'

const map = new KeyValueMap()
const now = Date.now()
/** Sorted once, so that 20,000 keys are not sorted for each list. */
let sorted: string[] = []

class Sorted extends MemoryKeyValue {
  override async list(prefix: string, { after = '', limit }: { after?: string; limit: number }): Promise<string[]> {
    if (sorted.length !== map.entries.size) sorted = [...map.entries.keys()].sort()
    const found: string[] = []
    for (const key of sorted) {
      if (found.length === limit) break
      if (key.startsWith(prefix) && key > after) found.push(key)
    }
    return found
  }
}

/** Reports, like S3, when an object was written, page by page. Everything here was written long ago. */
class Listing extends CountingKeyValue {
  async *listWritten(prefix: string): AsyncGenerator<readonly string[]> {
    for (let after = ''; ; ) {
      const keys = await this.list(prefix, { limit: 1_000, after })
      yield []
      if (keys.length < 1_000) return
      after = keys.at(-1)!
    }
  }
}

const open = async (indexesEnded: boolean) => {
  const kv = new Listing(new Sorted(map, { wall: () => now }))
  const store = openKvInMemory(kv, { indexesEnded })
  return { kv, store, client: await connect(store, { logger: silentLogger }) }
}

beforeAll(async () => {
  const { client, store } = await open(true)
  await keepMany(client, store, now)
  await client.close()
}, 60_000)

test.each(QUESTIONS)(`with ${ENDED} ended tasks $what reads about what it returns`, async ({ what, ask, most }) => {
  const spent = async (isIndexed: boolean) => {
    const { kv, client, store } = await open(isIndexed)
    // A process that has run for a while knows that the index is complete.
    if (isIndexed) await store.count({ views: [{ status: 'archived' }] }, { cap: 1, now: null })
    kv.take()
    await ask(client, store)
    const { LIST = 0, GET = 0, PUT = 0 } = kv.take()
    await client.close()
    expect(PUT).toBe(0)
    return { LIST, GET }
  }
  const [before, after] = [await spent(false), await spent(true)]
  report(`| ${what} | ${before.LIST} | ${before.GET} | ${after.LIST} | ${after.GET} |`)
  expect(before.LIST).toBeGreaterThanOrEqual(20)
  expect(after.LIST).toBeLessThanOrEqual(most.LIST)
  expect(after.GET).toBeLessThanOrEqual(most.GET)
})
