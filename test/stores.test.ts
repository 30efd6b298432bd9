/**
 * Every store × every conformance case, and the model walk on each. Here the embedded ones, or PostgreSQL; those of S3 and NATS have
 * files of their own, test/s3/server and test/nats, so that they run beside each other.
 */
import { conforms, FEW_SEEDS, walksLikeTheModel } from './prove.ts'
import { stores } from './stores.ts'

for (const [n, store] of stores.filter(({ kind }) => kind === 'embedded' || kind === 'postgres').entries()) {
  conforms(store)
  const isOldest = store.kind === 'postgres' && n > 0
  walksLikeTheModel(store, isOldest ? FEW_SEEDS : undefined)
}
