/** How long questions about ended tasks take in a store that keeps 20,000 of them, at 30 ms a request. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, silentLogger } from '../../../src/index.ts'
import { KvStore } from '../../../src/store/kv/store.ts'
import { parseAddress } from '../../../src/store/s3/address.ts'
import { loadDriver, type RequestKind } from '../../../src/store/s3/client.ts'
import { S3KeyValue } from '../../../src/store/s3/key-value.ts'
import { report } from '../../crash/seed.ts'
import { ENDED, keepMany, QUESTIONS } from '../../kv/ended/questions.ts'
import { startSimulatedS3 } from '../../servers/simulated-s3/start.ts'

const s3 = await startSimulatedS3({ latency: 0 })
const { url, credentials } = s3.fresh()
afterAll(() => s3.remove())

const open = async (indexesEnded = true) => {
  const counts: Record<RequestKind, number> = { PUT: 0, GET: 0, LIST: 0, DELETE: 0 }
  const onRequest = (kind: RequestKind): void => {
    counts[kind]++
  }
  const kv = new S3KeyValue(await loadDriver(), parseAddress(url), { credentials, requestTimeout: 10_000, onRequest })
  const store = new KvStore(kv, { capabilities: [], leaseTtl: 30_000, indexesEnded })
  return { client: await connect(store, { logger: silentLogger }), store, counts }
}

beforeAll(async () => {
  const { client, store } = await open()
  await keepMany(client, store, Date.now())
  await client.close()
  await s3.change({ latency: 30 })
}, 600_000)

/** HOLDFAST_WALK=1 measures the same without the index, which takes minutes. */
const isIndexed = process.env['HOLDFAST_WALK'] === undefined

test.each(QUESTIONS)(
  `with ${ENDED} ended tasks $what takes few requests`,
  { timeout: 300_000 },
  async ({ what, ask, most }) => {
    const { client, store, counts } = await open(isIndexed)
    if (isIndexed) await store.count({ views: [{ status: 'archived' }] }, { cap: 1, now: null })
    const before = { ...counts }
    const began = performance.now()
    await ask(client, store)
    const took = performance.now() - began
    const [LIST, GET] = [counts.LIST - before.LIST, counts.GET - before.GET]
    await client.close()
    report(`s3, 30 ms: ${what}: ${LIST} LIST, ${GET} GET, ${(took / 1_000).toFixed(2)} s`)
    if (!isIndexed) return
    // One for the clock, where nothing was asked for a while.
    expect(LIST).toBeLessThanOrEqual(most.LIST + 1)
    expect(GET).toBeLessThanOrEqual(most.GET)
  },
)
