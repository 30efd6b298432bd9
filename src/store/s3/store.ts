/** S3 and what speaks like it: a queue that needs nothing but a bucket. */
import type { S3ClientConfig } from '@aws-sdk/client-s3'
import { type Duration, parseDuration } from '../../core/durations.ts'
import { HoldfastError, isHoldfastError } from '../../core/errors.ts'
import { SteadyKeyValue } from '../kv/steady.ts'
import { KvStore } from '../kv/store.ts'
import type { KeeperOptions, Store } from '../store.ts'
import { isPortable, startKeeper } from '../threaded-keeper.ts'
import { parseAddress, type S3Place } from './address.ts'
import { loadDriver, type RequestKind } from './client.ts'
import { examine } from './examine.ts'
import { checkIdentity, openIdentity } from './identity.ts'
import type { KeeperPlace } from './keeper.ts'
import { S3KeyValue } from './key-value.ts'
import { proveConditions } from './proof.ts'

export interface S3Options {
  /** Make the store in the bucket when there is none. Default false. */
  readonly create?: boolean
  /** Default: as the AWS SDK finds them: environment, profile, role. */
  readonly credentials?: S3ClientConfig['credentials']
  /** After this long without an answer a request is given up. Default 10 s. */
  readonly requestTimeout?: Duration
  /** Told of every request that is sent: what you are charged for. */
  readonly onRequest?: (kind: RequestKind) => void
  readonly onCreated?: () => void
}

const LEASE_TTL = 30_000
const SHORTEST_DEADLINE = 100

/** Where the proof was given: once in a process is enough. */
const proved = new Map<string, { readonly etagsAreBare: boolean }>()

export const openS3 = async (url: string, options: S3Options = {}): Promise<Store> => {
  const place = parseAddress(url)
  const requestTimeout = parseDuration(options.requestTimeout ?? '10s', 'requestTimeout')
  if (requestTimeout < SHORTEST_DEADLINE)
    throw new HoldfastError(
      'INVALID_OPTION',
      `requestTimeout is ${requestTimeout} ms; the least is ${SHORTEST_DEADLINE} ms`,
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
    const steady = new SteadyKeyValue(kv)
    await steady.now()
    await prove(kv, place)
    const identity = await openIdentity(steady, { create, ...(onCreated === undefined ? null : { onCreated }) })
    const { etagsAreBare } = kv
    const told: KeeperPlace = { place, credentials, requestTimeout, etagsAreBare }
    const thread = { beside: import.meta.url, name: 'holdfast-s3', place: told, isLate: true }
    return new KvStore(kv, {
      capabilities: ['durable'],
      leaseTtl: LEASE_TTL,
      checkIdentity: () => checkIdentity(steady, identity),
      examine: () => examine(driver, kv, place),
      ...(isPortable(told) ? { keeper: (own: KeeperOptions) => startKeeper(thread, own) } : null),
    })
  } catch (error) {
    await kv.close()
    throw isHoldfastError(error, 'STORE_NOT_FOUND') && error.details['name'] === 'NoSuchBucket'
      ? new HoldfastError('STORE_NOT_FOUND', `there is no bucket ${place.bucket}: make it first`, error.details, error)
      : error
  }
}

const prove = async (kv: S3KeyValue, { endpoint, bucket }: S3Place): Promise<void> => {
  const where = `${endpoint} ${bucket}`
  const known = proved.get(where)
  if (known !== undefined) {
    kv.etagsAreBare = known.etagsAreBare
    return
  }
  await proveConditions(kv)
  proved.set(where, { etagsAreBare: kv.etagsAreBare })
}
