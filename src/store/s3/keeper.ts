/** What the keeper's thread needs to create the same client. */
import type { S3ClientConfig } from '@aws-sdk/client-s3'
import type { S3Place } from './address.ts'

export interface KeeperPlace {
  readonly place: S3Place
  /** undefined: as the SDK finds them there. */
  readonly credentials: S3ClientConfig['credentials'] | undefined
  readonly requestTimeout: number
  readonly etagsAreBare: boolean
}
