/** What a request asks of the simulated S3, read from its line and headers. Signatures are not checked. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Action, Kind } from './options.ts'

export interface S3Request {
  readonly method: string
  readonly bucket: string
  /** Empty: the bucket itself. */
  readonly key: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Access key id. */
  readonly by: string
  readonly kind: Kind
  readonly action: Action
  /** For the counts. */
  readonly folder: string
}

const NO_QUERY = new URLSearchParams()

export const readRequest = (method: string, url: string, headers: IncomingHttpHeaders, body: Buffer): S3Request => {
  const mark = url.indexOf('?')
  const path = decodeURIComponent(mark === -1 ? url : url.slice(0, mark))
  const query = mark === -1 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1))
  const end = path.indexOf('/', 1)
  const bucket = path.slice(1, end === -1 ? undefined : end)
  const key = end === -1 ? '' : path.slice(end + 1)
  const isList = method === 'GET' && query.has('list-type')
  const named = isList ? (query.get('prefix') ?? '') : key
  const slash = named.indexOf('/')
  return {
    method,
    bucket,
    key,
    query,
    headers,
    body,
    by: /Credential=([^/]*)/.exec(headers.authorization ?? '')?.[1] ?? '',
    kind: isList ? 'LIST' : method === 'PUT' ? 'PUT' : method === 'GET' || method === 'HEAD' ? 'GET' : 'DELETE',
    action: actionOf(method, key, query),
    folder: slash === -1 ? named : named.slice(0, slash),
  }
}

const actionOf = (method: string, key: string, query: URLSearchParams): Action => {
  if (method === 'PUT') return 's3:PutObject'
  if (method === 'DELETE' || method === 'POST') return 's3:DeleteObject'
  if (key !== '') return 's3:GetObject'
  if (query.has('versioning')) return 's3:GetBucketVersioning'
  return query.has('lifecycle') ? 's3:GetLifecycleConfiguration' : 's3:ListBucket'
}
