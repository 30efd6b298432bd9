/** What every store must do, on S3, step by step beside the model: apart from the cases, because it takes as long as all of them. */
import { walksLikeTheModel } from '../../prove.ts'
import { stores } from '../../stores.ts'
import { volume } from '../../volume.ts'

/** The engine is that of `kv` in memory and of NATS, which walk twenty each; here it is the requests that are tried. */
const SEEDS = volume(4, 8)

for (const store of stores.filter(({ kind }) => kind === 's3')) walksLikeTheModel(store, SEEDS)
