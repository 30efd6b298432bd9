/** `s3://bucket/prefix?endpoint=…&region=…` taken apart. Credentials never stand in it: they come as the AWS SDK finds them. */
import { HoldfastError } from '../../core/errors.ts'

export interface S3Place {
  readonly bucket: string
  /** Empty, or ends with a slash. */
  readonly prefix: string
  readonly endpoint: string | null
  readonly region: string | null
  /** The bucket in the path instead of the host's name: what most servers but AWS want. */
  readonly pathStyle: boolean
  /** For messages. */
  readonly address: string
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** Signs that need no care anywhere, in keys that must stay under 1,024 bytes. */
const PREFIX = /^[A-Za-z0-9!_.*'()/-]{0,150}$/
const SETTINGS: ReadonlySet<string> = new Set(['endpoint', 'region', 'pathStyle'])

const refused = (address: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `'${address}' ${why}: write s3://bucket/prefix?endpoint=…&region=…`, {
    field: 'url',
  })

export const parseAddress = (url: string): S3Place => {
  // Whatever stands before an @ may be a secret: it is not repeated.
  const shown = url.replace(/\/\/[^/?]*@/, '//')
  const [, bucket = '', path = '', query = ''] = /^s3:\/\/([^/?]*)\/?([^?]*)(?:\?(.*))?$/i.exec(url) ?? []
  if (bucket.includes('@')) throw refused(shown, 'has credentials in it; set AWS_ACCESS_KEY_ID and the like instead')
  if (!BUCKET.test(bucket)) throw refused(shown, 'does not name a bucket')
  const prefix = path.replace(/^\/+|\/+$/g, '')
  if (!PREFIX.test(prefix)) throw refused(shown, "has a prefix with other signs than A-Z a-z 0-9 ! _ . * ' ( ) / -")
  const settings = new URLSearchParams(query)
  for (const name of settings.keys()) if (!SETTINGS.has(name)) throw refused(shown, `has an unknown setting ${name}`)
  const endpoint = settings.get('endpoint')
  if (endpoint !== null) checkEndpoint(endpoint, shown)
  const region = settings.get('region')
  const pathStyle = settings.get('pathStyle')
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
