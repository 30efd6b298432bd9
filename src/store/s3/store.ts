/** A store on S3 or a compatible server. It needs nothing but a bucket. */
import type { S3ClientConfig } from '@aws-sdk/client-s3'
import { HoldfastError, isHoldfastError } from '../../core/errors.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { RetryingKeyValue } from '../kv/access/retrying-key-value.ts'
import { withMissingRights } from '../kv/missing-rights.ts'
import { KvStore } from '../kv/store.ts'
import type { Store } from '../store.ts'
import { threadedKeeper } from '../threads/threaded-keeper.ts'
import { parseAddress } from './address.ts'
import { loadDriver, type RequestKind } from './client.ts'
import { examine } from './examine.ts'
import { checkIdentity, type IdentityOptions, openIdentity, renewIdentity } from './identity.ts'
import type { KeeperPlace } from './keeper.ts'
import { S3KeyValue } from './key-value.ts'
import { ProofRecord } from './proof-record.ts'
import { missingRights } from './rights.ts'

/** Options of `openS3`. */
export interface S3Options {
  /** Create the store in the bucket if it does not exist. Default false. */
  readonly create?: boolean
  /** Default: as the AWS SDK finds them (environment, profile, role). */
  readonly credentials?: S3ClientConfig['credentials']
  /** A request without a reply is aborted after this time. Default 10 s. */
  readonly requestTimeout?: Duration
  /** Called for every request that is sent, which is what you are charged for. */
  readonly onRequest?: (kind: RequestKind) => void
  /** Called when there was no store and one was created. */
  readonly onCreated?: () => void
  /** Called for what an operator should know. */
  readonly onWarning?: (message: string) => void
}

const OPTIONS: ReadonlySet<string> = new Set<keyof S3Options>([
  'create',
  'credentials',
  'requestTimeout',
  'onRequest',
  'onCreated',
  'onWarning',
])

const LEASE_TTL = 30_000
const SHORTEST_DEADLINE = 100

/** Opens a store in a bucket. */
export const openS3 = async (url: string, options: S3Options = {}): Promise<Store> => {
  checkOptionNames(options, OPTIONS, 's3')
  const place = parseAddress(url)
  const requestTimeout = parseDuration(options.requestTimeout ?? '10s', 'requestTimeout')
  if (requestTimeout < SHORTEST_DEADLINE)
    throw new HoldfastError(
      'INVALID_OPTION',
      `requestTimeout is ${requestTimeout} ms; the minimum is ${SHORTEST_DEADLINE} ms`,
      {
        field: 'requestTimeout',
      },
    )
  const { credentials, onRequest, onCreated, create = false } = options
  const driver = await loadDriver()
  const kv = new S3KeyValue(driver, place, {
    requestTimeout,
    ...(credentials === undefined ? null : { credentials }),
    ...(onRequest === undefined ? null : { onRequest }),
  })
  try {
    await kv.checkRegion()
    const retrying = new RetryingKeyValue(kv)
    const proof = new ProofRecord(kv, place)
    let identity = await openProved(retrying, proof, { create, ...(onCreated === undefined ? null : { onCreated }) })
    const { etagsAreBare } = kv
    const keeperPlace: KeeperPlace = { place, credentials, requestTimeout, etagsAreBare }
    const thread = {
      beside: import.meta.url,
      name: 'holdfast-s3',
      place: keeperPlace,
      settings: 'the credentials',
      isLate: true,
      keepsClaims: 'by-id',
    } as const
    const keeper = threadedKeeper(thread, options.onWarning)
    return new KvStore(kv, {
      capabilities: [],
      leaseTtl: LEASE_TTL,
      indexesEnded: true,
      checkIdentity: async () => {
        await checkIdentity(retrying, identity)
        await proof.check()
      },
      examine: () => examine(driver, kv, place, proof),
      renewIdentity: async () => {
        identity = await renewIdentity(retrying)
      },
      ...(keeper && { keeper }),
    })
  } catch (refusal) {
    const error = await withMissingRights(refusal, 'these credentials lack', () => missingRights(kv))
    await kv.close()
    throw isHoldfastError(error, 'STORE_NOT_FOUND') && error.details['name'] === 'NoSuchBucket'
      ? new HoldfastError(
          'STORE_NOT_FOUND',
          `there is no bucket ${place.bucket}: create it first`,
          error.details,
          error,
        )
      : error
  }
}

/** Two reads in the normal case. A store is only created on a proved server, and without a store nothing is proved. */
const openProved = async (kv: RetryingKeyValue, proof: ProofRecord, options: IdentityOptions): Promise<string> => {
  const known = proof.read()
  known.catch(() => {})
  let proving: Promise<void> | null = null
  const ensure = (): Promise<void> => {
    proving ??= known.then((isKnown) => (isKnown ? undefined : proof.ensure()))
    return proving
  }
  const identity = await openIdentity(kv, { ...options, beforeCreate: ensure })
  await ensure()
  return identity
}
