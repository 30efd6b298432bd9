/** What every store must do, on S3, case by case. */
import { conforms } from '../../prove.ts'
import { stores } from '../../stores.ts'

for (const store of stores.filter(({ kind }) => kind === 's3')) conforms(store)
