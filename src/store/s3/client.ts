/** The AWS SDK, set up for conditional writes: one try a request, a deadline on each, and the server's time from every answer. */
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3'
import { HoldfastError } from '../../core/errors.ts'
import type { S3Place } from './address.ts'
import type { ServerClock } from './clock.ts'

export type Driver = typeof import('@aws-sdk/client-s3')

const PACKAGE = '@aws-sdk/client-s3'

export const loadDriver = async (): Promise<Driver> => {
  try {
    return await import('@aws-sdk/client-s3')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new HoldfastError(
      'DRIVER_MISSING',
      `S3 needs the package '${PACKAGE}': npm install ${PACKAGE}`,
      { package: PACKAGE },
      error,
    )
  }
}

export interface ClientOptions {
  /** Default: as the AWS SDK finds them (environment, profile, role). */
  readonly credentials?: S3ClientConfig['credentials']
  /** After this long without an answer a request is given up, in milliseconds. */
  readonly requestTimeout: number
  /** Told of every request that is sent. */
  readonly onRequest?: (kind: RequestKind) => void
}

/** As they are charged for: deletes of many keys are deletes, lists are lists. */
export type RequestKind = 'PUT' | 'GET' | 'LIST' | 'DELETE'

const kindOf = ({ method, query = {} }: { readonly method: string; readonly query?: object }): RequestKind =>
  method === 'GET' && 'list-type' in query ? 'LIST' : method === 'PUT' || method === 'GET' ? method : 'DELETE'

const CONNECT_TIMEOUT = 3_000
const SOCKETS = 80

export const makeClient = (driver: Driver, place: S3Place, clock: ServerClock, options: ClientOptions): S3Client => {
  const { endpoint, region, pathStyle } = place
  const agent = { keepAlive: true, maxSockets: SOCKETS }
  const client = new driver.S3Client({
    ...(endpoint === null ? null : { endpoint }),
    ...(region === null ? (endpoint === null ? null : { region: 'us-east-1' }) : { region }),
    ...(options.credentials === undefined ? null : { credentials: options.credentials }),
    forcePathStyle: pathStyle,
    // Ours is added below, before the first request, and there is no other: it need not be put together for every one.
    cacheMiddleware: true,
    // A repeated conditional write would meet its own first try and take it for somebody else's.
    maxAttempts: 1,
    // What other vendors than AWS understand.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      requestTimeout: options.requestTimeout,
      throwOnRequestTimeout: true,
      connectionTimeout: Math.min(CONNECT_TIMEOUT, options.requestTimeout),
      httpAgent: agent,
      httpsAgent: agent,
    },
  })
  client.config.signer = kept(client.config.signer)
  client.middlewareStack.add(
    (next) => async (args) => {
      const askedAt = performance.now()
      options.onRequest?.(kindOf(args.request as Parameters<typeof kindOf>[0]))
      const answer = await next(args)
      const { headers } = answer.response as { headers?: Record<string, string> }
      clock.heard(headers?.['date'], askedAt, performance.now())
      return answer
    },
    { step: 'deserialize', priority: 'low', name: 'holdfastClock' },
  )
  return client
}

type MakeSigner = S3Client['config']['signer']

/** The SDK makes a signer for every request. One for each region does as well: it asks for the credentials each time that it signs. */
const kept = (make: MakeSigner): MakeSigner => {
  const signers = new Map<string, ReturnType<MakeSigner>>()
  return (scheme) => {
    const name = `${scheme?.name} ${scheme?.signingName} ${scheme?.signingRegion}`
    const signer = signers.get(name) ?? make(scheme)
    signers.set(name, signer)
    signer.catch(() => signers.delete(name))
    return signer
  }
}
