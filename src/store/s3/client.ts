/**
 * The AWS SDK, configured for conditional writes: one attempt for each request, a timeout, and the server's time from every
 * reply.
 */
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3'
import { HoldfastError } from '../../core/errors.ts'
import { isModuleMissing } from '../../core/host/missing-module.ts'
import type { S3Place } from './address.ts'
import type { ServerClock } from './clock.ts'
import { addCredentialRefresh } from './credentials.ts'

export type Driver = typeof import('@aws-sdk/client-s3')

const PACKAGE = '@aws-sdk/client-s3'

export const loadDriver = async (): Promise<Driver> => {
  try {
    return await import('@aws-sdk/client-s3')
  } catch (error) {
    if (!isModuleMissing(error)) throw error
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
  /** In milliseconds. */
  readonly requestTimeout: number
  /** Called for every request that is sent. */
  readonly onRequest?: (kind: RequestKind) => void
}

/** As charged: a delete of many keys is one delete. */
export type RequestKind = 'PUT' | 'GET' | 'LIST' | 'DELETE'

const kindOf = ({ method, query = {} }: { readonly method: string; readonly query?: object }): RequestKind =>
  method === 'GET' && 'list-type' in query ? 'LIST' : method === 'PUT' || method === 'GET' ? method : 'DELETE'

const CONNECT_TIMEOUT = 3_000
/** The SDK passes its settings on to the code that reads profiles. Only that code knows this one. */
const REREAD = { ignoreCache: true } as object
const SOCKETS = 80

export const makeClient = (driver: Driver, place: S3Place, clock: ServerClock, options: ClientOptions): S3Client => {
  const { endpoint, region, pathStyle } = place
  const agent = { keepAlive: true, maxSockets: SOCKETS }
  const client = new driver.S3Client({
    ...(endpoint === null ? null : { endpoint }),
    ...(region === null ? (endpoint === null ? null : { region: 'us-east-1' }) : { region }),
    ...(options.credentials === undefined ? null : { credentials: options.credentials }),
    forcePathStyle: pathStyle,
    // The middleware is complete before the first request, so the SDK need not rebuild it for every request.
    cacheMiddleware: true,
    // A repeated conditional write would meet its own first attempt and take it for a conflict.
    maxAttempts: 1,
    // Reads profiles from their files every time credentials are needed, not once for each process.
    ...REREAD,
    // Other vendors do not support the newer checksums.
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
  client.config.signer = withSignerCache(client.config.signer)
  addCredentialRefresh(client)
  client.middlewareStack.add(
    (next) => async (args) => {
      const sentAt = performance.now()
      options.onRequest?.(kindOf(args.request as Parameters<typeof kindOf>[0]))
      const observe = (response: unknown): void => {
        const { headers } = (response ?? {}) as { headers?: Record<string, string> }
        clock.observe(headers?.['date'], sentAt, performance.now())
      }
      try {
        const answer = await next(args)
        observe(answer.response)
        return answer
      } catch (error) {
        // Error replies have a date as well. An idle process gets hardly anything else.
        observe((error as { $response?: unknown }).$response)
        throw error
      }
    },
    { step: 'deserialize', priority: 'low', name: 'holdfastClock' },
  )
  return client
}

type MakeSigner = S3Client['config']['signer']

/**
 * The SDK creates a signer for every request. One for each region is enough: it asks for the credentials every time it signs.
 */
const withSignerCache = (make: MakeSigner): MakeSigner => {
  const signers = new Map<string, ReturnType<MakeSigner>>()
  return (scheme) => {
    const name = `${scheme?.name} ${scheme?.signingName} ${scheme?.signingRegion}`
    const signer = signers.get(name) ?? make(scheme)
    signers.set(name, signer)
    signer.catch(() => signers.delete(name))
    return signer
  }
}
