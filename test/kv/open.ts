/** The engine on a map: the store that S3 and NATS share, without either. */
import type { KeyValue } from '../../src/store/kv/key-value.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import type { Store } from '../../src/store/store.ts'
import { MemoryKeyValue } from './memory-key-value.ts'

export const openKvInMemory = (kv: KeyValue = new MemoryKeyValue()): Store =>
  new KvStore(kv, { capabilities: ['host-clock'], leaseTtl: 5_000 })
