/** What the simulated S3 does with a request: its buckets, its conditions, its refusals. */
import { type Answer, listing, refusal, unescaped, xml } from './answers.ts'
import { Bucket } from './bucket.ts'
import { DEFAULTS, type Fault, type SimulatedS3Options } from './options.ts'
import type { S3Request } from './request.ts'

const SECOND = 1_000

export class SimulatedState {
  options: Required<SimulatedS3Options>
  readonly #buckets = new Map<string, Bucket>()
  /** By bucket and key: when the last write that was let through came. */
  readonly #written = new Map<string, number>()
  /** How often each fault has happened. */
  #happened = new Map<Fault, number>()

  constructor(options: SimulatedS3Options) {
    this.options = { ...DEFAULTS, ...options }
  }

  change(options: SimulatedS3Options): void {
    this.options = { ...this.options, ...options }
    if (options.faults !== undefined) this.#happened = new Map()
  }

  now(): number {
    return Date.now() + this.options.clockOffset
  }

  bucket(name: string): Bucket {
    const bucket = this.#buckets.get(name) ?? new Bucket()
    this.#buckets.set(name, bucket)
    return bucket
  }

  /** The fault that this request meets, if any. Counts it. */
  faultFor({ kind, key }: S3Request): Fault | null {
    for (const fault of this.options.faults) {
      if (fault.kind !== undefined && fault.kind !== kind) continue
      if (fault.key !== undefined && !key.includes(fault.key)) continue
      const times = this.#happened.get(fault) ?? 0
      if (times >= (fault.times ?? Number.POSITIVE_INFINITY)) continue
      this.#happened.set(fault, times + 1)
      return fault
    }
    return null
  }

  answer(request: S3Request): Answer {
    const { buckets, refused, rights } = this.options
    const { method, bucket: name, key, action, by, query } = request
    if (method === 'PUT' && key === '') return this.#makeBucket(name)
    if (buckets !== null && !buckets.includes(name)) return refusal(404, 'NoSuchBucket')
    if (refused.includes(action) || rights[by]?.includes(action) === false) return refusal(403, 'AccessDenied')
    const bucket = this.bucket(name)
    if (method === 'PUT') return this.#put(bucket, request)
    if (method === 'POST') return deleteMany(bucket, request)
    if (method === 'DELETE') {
      bucket.delete(key)
      return { status: 204 }
    }
    if (key !== '') return get(bucket, request)
    if (query.has('list-type')) return this.#list(bucket, query)
    return this.#about(query)
  }

  #makeBucket(name: string): Answer {
    const { buckets } = this.options
    if (buckets !== null) this.change({ buckets: [...buckets, name] })
    return { status: 200 }
  }

  #put(bucket: Bucket, { bucket: name, key, headers, body }: S3Request): Answer {
    const [ifMatch, ifNoneMatch] = [headers['if-match'], headers['if-none-match']]
    const { writesPerSecondAndKey: limit, conditions } = this.options
    if (conditions === 'unsupported' && (ifMatch ?? ifNoneMatch) !== undefined) return refusal(501, 'NotImplemented')
    const now = this.now()
    if (limit !== null) {
      const place = `${name}/${key}`
      if (now - (this.#written.get(place) ?? 0) < SECOND / limit) return refusal(429, 'TooManyRequests')
      this.#written.set(place, now)
    }
    const found = bucket.objects.get(key)
    if (ifNoneMatch === '*' && found !== undefined) return refusal(412, 'PreconditionFailed')
    if (ifMatch !== undefined && found === undefined) return refusal(404, 'NoSuchKey')
    if (ifMatch !== undefined && found!.etag !== ifMatch) return refusal(412, 'PreconditionFailed')
    return { status: 200, headers: { etag: bucket.put(key, body, now).etag } }
  }

  #list(bucket: Bucket, query: URLSearchParams): Answer {
    const token = query.get('continuation-token')
    const from = token === null ? null : Buffer.from(token, 'hex').toString()
    const startAfter = query.get('start-after') ?? ''
    const range = {
      prefix: query.get('prefix') ?? '',
      delimiter: query.get('delimiter') ?? '',
      after: from ?? startAfter,
      limit: Math.min(Number(query.get('max-keys') ?? 1_000), this.options.pageSize),
    }
    const page = this.options.listsUnordered ? bucket.listUnordered(range, startAfter, from ?? '') : bucket.list(range)
    return listing(bucket, page)
  }

  /** Of the bucket itself. */
  #about(query: URLSearchParams): Answer {
    const { versioning, lifecycle } = this.options
    if (query.has('versioning')) {
      const status = versioning === null ? '' : `<Status>${versioning}</Status>`
      return xml(`<VersioningConfiguration>${status}</VersioningConfiguration>`)
    }
    if (query.has('lifecycle'))
      return lifecycle === null ? refusal(404, 'NoSuchLifecycleConfiguration') : xml(lifecycle)
    return { status: 200 }
  }
}

const get = (bucket: Bucket, { key, method, headers }: S3Request): Answer => {
  const found = bucket.objects.get(key)
  if (found === undefined) return refusal(404, 'NoSuchKey')
  const { etag, body, writtenAt } = found
  if (headers['if-none-match'] === etag) return { status: 304, headers: { etag } }
  const about = { etag, 'content-type': 'application/json', 'last-modified': new Date(writtenAt).toUTCString() }
  return method === 'HEAD' ? { status: 200, headers: about } : { status: 200, headers: about, body }
}

const deleteMany = (bucket: Bucket, { body }: S3Request): Answer => {
  for (const [, key] of body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)) bucket.delete(unescaped(key!))
  return xml('<DeleteResult></DeleteResult>')
}
