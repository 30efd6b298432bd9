/** What every store must do, on S3, step by step beside the model: apart from the cases, because it takes as long as all of them. */
import { walksLikeTheModel } from '../../prove.ts'
import { stores } from '../../stores.ts'

for (const store of stores.filter(({ kind }) => kind === 's3')) walksLikeTheModel(store)
