/**
 * One signed S3 request, written out. The tests' own, so that a server and the fault proxy are tried without the client
 * that they are to test.
 */
import { createHash, createHmac } from 'node:crypto'

export interface S3Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

export interface S3Request {
  readonly method: string
  /** With path and query. */
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const strictly = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

/** Signature version 4 over host, date and body. */
export const signedHeaders = (
  { method, url, headers = {}, body = '' }: S3Request,
  { accessKeyId, secretAccessKey, region }: S3Keys,
  now = new Date(),
): Record<string, string> => {
  const time = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`
  const signed: Record<string, string> = {
    ...headers,
    host: url.host,
    'x-amz-content-sha256': sha256(body),
    'x-amz-date': time,
  }
  const names = Object.keys(signed)
    .map((name) => name.toLowerCase())
    .sort()
  const byName = new Map(Object.entries(signed).map(([name, value]) => [name.toLowerCase(), value]))
  const query = [...url.searchParams]
    .map(([name, value]) => `${strictly(name)}=${strictly(value)}`)
    .sort()
    .join('&')
  const canonical = [
    method,
    url.pathname.split('/').map(decodeURIComponent).map(strictly).join('/'),
    query,
    ...names.map((name) => `${name}:${byName.get(name)!.trim()}`),
    '',
    names.join(';'),
    sha256(body),
  ].join('\n')
  const key = [time.slice(0, 8), region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`)
  const signature = hmac(key, ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`
  return { ...signed, authorization }
}

export const sendSigned = (request: S3Request, keys: S3Keys): Promise<Response> => {
  const { host: _, ...headers } = signedHeaders(request, keys)
  return fetch(request.url, {
    method: request.method,
    headers,
    // As bytes: for a text fetch would add a content-type, and a header that was not signed is refused.
    ...(request.body === undefined ? null : { body: Buffer.from(request.body) }),
  })
}
