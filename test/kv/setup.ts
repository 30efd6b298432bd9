/** Several processes on one key-value store, with one clock for all. */
import { onTestFinished } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { CountingKeyValue } from './places/counting-key-value.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'

export interface Process {
  readonly client: Client
  readonly store: Store
  readonly kv: CountingKeyValue
}

export const begin = () => {
  const clock = new FakeClock()
  const map = new KeyValueMap()
  const open = async (): Promise<Process> => {
    const kv = new CountingKeyValue(new MemoryKeyValue(map, { wall: () => clock.wall() }))
    const store = new KvStore(kv, {
      capabilities: [],
      leaseTtl: 30_000,
      indexesEnded: true,
      timers: clock,
      checkIdentity: async () => void (await kv.get('holdfast.json')),
    })
    const client = await connect(store, { clock, random: clock.random, logger: silentLogger })
    onTestFinished(() => client.close())
    return { client, store, kv }
  }
  return { clock, map, open }
}
