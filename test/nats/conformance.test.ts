/** What every store must do, on NATS: on the newest server and on the oldest that is supported. */
import { conforms, walksLikeTheModel } from '../prove.ts'
import { stores } from '../stores.ts'

for (const store of stores.filter(({ kind }) => kind === 'nats')) {
  conforms(store)
  walksLikeTheModel(store)
}
