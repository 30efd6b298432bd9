/** Parses `s3://bucket/prefix?endpoint=…&region=…`. Credentials are never part of it: the AWS SDK finds them. */
import { HoldfastError } from '../../core/errors.ts'
import { refuseUnknownSettings } from '../../core/values/settings.ts'

export interface S3Place {
  readonly bucket: string
  /** Empty, or ends with a slash. */
  readonly prefix: string
  readonly endpoint: string | null
  readonly region: string | null
  /** The bucket in the path instead of the host name, which most servers other than AWS need. */
  readonly pathStyle: boolean
  /** For messages. */
  readonly address: string
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** Characters that are safe everywhere. Keys must stay under 1,024 bytes. */
const PREFIX = /^[A-Za-z0-9!_.*'()/-]{0,150}$/
const SETTINGS = ['endpoint', 'region', 'pathStyle']

const refused = (address: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `'${address}' ${why}: write s3://bucket/prefix?endpoint=…&region=…`, {
    field: 'url',
  })

export const parseAddress = (url: string): S3Place => {
  // Text before an @ may be a secret, so it is not repeated.
  const shown = url.replace(/\/\/[^/?]*@/, '//')
  const [, bucket = '', path = '', query = ''] = /^s3:\/\/([^/?]*)\/?([^?]*)(?:\?(.*))?$/i.exec(url) ?? []
  if (bucket.includes('@')) throw refused(shown, 'has credentials in it; set AWS_ACCESS_KEY_ID and the like instead')
  if (!BUCKET.test(bucket)) throw refused(shown, 'does not name a bucket')
  const prefix = path.replace(/^\/+|\/+$/g, '')
  if (!PREFIX.test(prefix))
    throw refused(shown, "has a prefix with characters other than A-Z a-z 0-9 ! _ . * ' ( ) / -")
  const settings = new URLSearchParams(query)
  refuseUnknownSettings(shown, settings.keys(), SETTINGS)
  const endpoint = settings.get('endpoint')
  if (endpoint !== null) checkEndpoint(endpoint, shown)
  const region = settings.get('region')
  const pathStyle = settings.get('pathStyle')
  if (pathStyle !== null && pathStyle !== 'true' && pathStyle !== 'false')
    throw refused(shown, `has pathStyle=${pathStyle}, which must be true or false`)
  const beside = endpoint === null ? '' : ` (${endpoint})`
  return {
    bucket,
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint,
    region,
    pathStyle: pathStyle === null ? endpoint !== null : pathStyle === 'true',
    address: `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}${beside}`,
  }
}

const checkEndpoint = (endpoint: string, shown: string): void => {
  const url = URL.parse(endpoint)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw refused(shown, 'has an endpoint that is not an http address')
  if (url.username !== '' || url.password !== '') throw refused(shown.split('?')[0]!, 'has credentials in its endpoint')
}
