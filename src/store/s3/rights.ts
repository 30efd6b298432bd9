/** Finds out which permissions these credentials lack, with requests that change nothing. */
import { randomUUID } from 'node:crypto'
import { isHoldfastError } from '../../core/errors.ts'
import type { Fact } from '../../core/observe/diagnosis.ts'
import { RetryingKeyValue } from '../kv/access/retrying-key-value.ts'
import { PROOF } from '../kv/records/names.ts'
import type { S3KeyValue } from './key-value.ts'

/** No server has written this etag. */
const NO_MARK = '"00000000000000000000000000000000"'

/** Only permissions that a worker needs. They are tried on an object that does not exist. */
export const missingRights = async (kv: S3KeyValue): Promise<readonly string[]> => {
  const retrying = new RetryingKeyValue(kv)
  const key = `${PROOF}rights-${randomUUID()}`
  const tries: readonly (readonly [right: string, attempt: () => Promise<unknown>])[] = [
    ['s3:ListBucket', () => retrying.list(key, { limit: 1 })],
    // Written only by a server that ignores the condition. The delete below removes it again.
    ['s3:PutObject', () => kv.update(key, randomUUID(), NO_MARK)],
    ['s3:GetObject', () => retrying.get(key)],
    ['s3:DeleteObject', () => retrying.delete([key])],
  ]
  const missing: string[] = []
  for (const [right, attempt] of tries) {
    const named = await refusedRight(attempt)
    // Without permission to list, reading a missing key is refused as well.
    if (named !== null) missing.push(named.includes(' and ') ? right : named)
  }
  return [...new Set(missing)]
}

/** null: it was not refused. */
const refusedRight = async (attempt: () => Promise<unknown>): Promise<string | null> => {
  try {
    await attempt()
    return null
  } catch (error) {
    if (!isHoldfastError(error, 'STORE_READ_ONLY')) throw error
    return String(error.details['right'])
  }
}

export const rightsFact = (missing: readonly string[], optional: readonly string[]): Fact => ({
  check: 'permissions',
  who: 'these credentials',
  missing,
  optional,
  how: 'Grant it in the policy of the role, user or key: docs/stores/s3.md has policies to paste.',
})
