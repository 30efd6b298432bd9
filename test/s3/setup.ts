/** Empty stores on one S3 server: each under a prefix of its own in the same bucket. */
import { randomBytes } from 'node:crypto'
import { openS3, type S3Options } from '../../src/store/s3/store.ts'
import type { Store } from '../../src/store/store.ts'
import { type S3Target, s3Target } from '../servers/s3.ts'
import type { S3Keys } from '../servers/signed-request.ts'

export const freshPrefix = (): string => `test-${randomBytes(6).toString('hex')}`

/** `s3://…` as a user writes it; credentials come beside it. */
export const addressOf = ({ endpoint, bucket, region }: S3Target, prefix: string): string =>
  `s3://${bucket}/${prefix}?endpoint=${endpoint}&region=${region}`

export const credentialsOf = ({ accessKeyId, secretAccessKey }: S3Keys) => ({ accessKeyId, secretAccessKey })

export const emptyPrefixes =
  (url: string, options: S3Options = {}): (() => Promise<Store>) =>
  () => {
    const target = s3Target(url)
    return openS3(addressOf(target, freshPrefix()), {
      credentials: credentialsOf(target),
      create: true,
      ...options,
    })
  }
