/** What every store must do, on NATS: on the newest server and on the oldest that is supported. */
import { conforms, FEW_SEEDS, walksLikeTheModel } from '../prove.ts'
import { stores } from '../stores.ts'

for (const [n, store] of stores.filter(({ kind }) => kind === 'nats').entries()) {
  conforms(store)
  walksLikeTheModel(store, n > 0 ? FEW_SEEDS : undefined)
}
