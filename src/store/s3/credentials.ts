/**
 * Rotating credentials. The SDK refreshes credentials that have an expiry, but keys that are replaced in a file have none. So
 * when the server refuses the credentials, they are read again from their source, and the request is repeated if they have
 * changed.
 */
import type { S3Client } from '@aws-sdk/client-s3'
import { isCredentialsError } from './errors.ts'

interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

type Provider = (options?: { readonly forceRefresh: boolean }) => Promise<Credentials>

export const addCredentialRefresh = (client: S3Client): void => {
  const credentials = client.config.credentials as Provider
  let reading: Promise<Credentials> | null = null
  /** Requests that are refused at the same time share one read. */
  const reread = (): Promise<Credentials> => {
    reading ??= credentials({ forceRefresh: true }).finally(() => {
      reading = null
    })
    return reading
  }
  client.middlewareStack.add(
    (next) => async (args) => {
      const before = await credentials()
      try {
        return await next(args)
      } catch (error) {
        if (!isCredentialsError(error)) throw error
        const fresh = await reread()
        // The request was refused before anything was written, so sending it again is safe.
        if (isSame(before, fresh)) throw error
        return await next(args)
      }
    },
    // Runs around the signing.
    { step: 'build', priority: 'high', name: 'holdfastCredentials' },
  )
}

const isSame = (one: Credentials, other: Credentials): boolean =>
  one.accessKeyId === other.accessKeyId &&
  one.secretAccessKey === other.secretAccessKey &&
  one.sessionToken === other.sessionToken
