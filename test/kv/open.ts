/** The engine on a map, without S3 or NATS. */
import type { KeyValue } from '../../src/store/kv/access/key-value.ts'
import { type KvOptions, KvStore } from '../../src/store/kv/store.ts'
import type { Store } from '../../src/store/store.ts'
import { MemoryKeyValue } from './places/memory-key-value.ts'

export const openKvInMemory = (kv: KeyValue = new MemoryKeyValue(), options: Partial<KvOptions> = {}): Store =>
  new KvStore(kv, { capabilities: ['host-clock'], leaseTtl: 5_000, indexesEnded: true, ...options })
