/** What an idle worker costs in a month, from an hour on a fake clock. */
import { connect, silentLogger } from '../../src/index.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { CountingKeyValue } from './places/counting-key-value.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'

const CASES = [
  { queues: 1, pollInterval: '2s' },
  { queues: 5, pollInterval: '2s' },
  { queues: 1, pollInterval: '10s' },
  { queues: 1, pollInterval: '30s' },
] as const

const [SETTLE, HOUR, HOURS] = [180, 3_600, 24 * 30] as const

interface Month {
  readonly PUT: number
  readonly GET: number
  readonly LIST: number
  readonly dollars: number
}

const measure = async ({ queues, pollInterval }: (typeof CASES)[number]): Promise<Month> => {
  const clock = new FakeClock()
  const kv = new CountingKeyValue(new MemoryKeyValue(new KeyValueMap(), { wall: () => clock.wall() }))
  const store = new KvStore(kv, {
    capabilities: [],
    leaseTtl: 30_000,
    timers: clock,
    checkIdentity: async () => void (await kv.get('holdfast.json')),
  })
  const client = await connect(store, { clock, random: clock.random, logger: silentLogger })
  const names = Array.from({ length: queues }, (_, n) => `queue-${n}`)
  const worker = client.worker({ queues: names, pollInterval }).handle('a', async () => null)
  worker.start()
  for (let second = 0; second < SETTLE; second++) await clock.advance(1_000)
  kv.take()
  for (let second = 0; second < HOUR; second++) await clock.advance(1_000)
  const { PUT = 0, GET = 0, LIST = 0 } = kv.take()
  const stopped = worker.stop()
  await clock.advance(5_000)
  await stopped
  await client.close()
  return { PUT, GET, LIST, dollars: (((PUT + LIST) * 5 + GET * 0.4) / 1e6) * HOURS }
}

export const idleMonth = {
  cases: CASES,
  measure,
  /** As in docs/stores/s3.md. */
  async table(): Promise<string> {
    const lines = ['| a worker that waits | PUT an hour | GET | LIST | a month |', '| --- | --- | --- | --- | --- |']
    for (const one of CASES) {
      const { PUT, GET, LIST, dollars } = await measure(one)
      const name = `${one.queues} queue${one.queues === 1 ? '' : 's'}, \`pollInterval\` ${one.pollInterval}`
      lines.push(`| ${name} | ${PUT} | ${GET} | ${LIST} | $${dollars.toFixed(2)} |`)
    }
    return lines.join('\n')
  },
}
