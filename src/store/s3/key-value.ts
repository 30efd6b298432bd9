/** A bucket as a versioned key-value store: the etag is the mark, If-None-Match and If-Match are the conditions. */
import type { S3Client } from '@aws-sdk/client-s3'
import { HoldfastError, isContactLost } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import type { Entry, KeyValue, ListRange, Mark } from '../kv/access/key-value.ts'
import { sleep } from '../kv/access/retry.ts'
import type { S3Place } from './address.ts'
import { type ClientOptions, type Driver, makeClient } from './client.ts'
import { ServerClock } from './clock.ts'
import { asHoldfastError, nameOf, statusOf } from './errors.ts'

const DELETES_AT_ONCE = 1_000
/** After this long without a reply, the clock needs a request. */
const CLOCK_LIFE = 20_000
/** A slow server is not asked for its time more often. */
const ASK_AGAIN = 1_000
const INLINE_LIMIT = 262_144
/** In bytes, on all servers. */
const LONGEST_KEY = 1_024
const LIST_PAGE = 1_000
const NOT_MODIFIED = 304
const PAGE_TRIES = 6
const FIRST_WAIT = 20
/** The precision of LastModified. */
const SECOND = 1_000

interface Page {
  readonly found: readonly { readonly key: string; readonly writtenAt: Instant }[]
  /** Of the next page; null: this is the last page. */
  readonly token: string | null
}

export class S3KeyValue implements KeyValue {
  readonly address: string
  readonly inlineLimit = INLINE_LIMIT
  readonly longestHint: number
  /** Some older servers compare an etag without its quotes. */
  etagsAreBare = false
  readonly #driver: Driver
  readonly #client: S3Client
  readonly #place: S3Place
  readonly #clock = new ServerClock()
  /** Monotonic: when the time was last asked for. */
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(driver: Driver, place: S3Place, options: ClientOptions) {
    this.#driver = driver
    this.#place = place
    this.address = place.address
    this.longestHint = LONGEST_KEY - place.prefix.length
    this.#client = makeClient(driver, place, this.#clock, options)
  }

  get client(): S3Client {
    return this.#client
  }

  /** Without this every request would fail, and be repeated as if the server were away. */
  async checkRegion(): Promise<void> {
    try {
      await this.#client.config.region()
    } catch (error) {
      const advice = 'write ?region=… in the address, or set AWS_REGION or the region of the profile'
      throw new HoldfastError(
        'INVALID_OPTION',
        `${this.address}: no region is known: ${advice}`,
        { field: 'url' },
        error,
      )
    }
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#place.bucket, Key: this.#place.prefix + key }
  }

  async get(key: string): Promise<Entry | null> {
    const found = await this.#get(key)
    if (found === 'same') throw this.#unclear(`the reply for ${key} answers a condition that was not sent`)
    return found
  }

  getChanged(key: string, mark: Mark): Promise<Entry | null | 'same'> {
    return this.#get(key, { IfNoneMatch: mark })
  }

  async #get(key: string, condition: object = {}): Promise<Entry | null | 'same'> {
    try {
      const answer = await this.#client.send(new this.#driver.GetObjectCommand({ ...this.#at(key), ...condition }))
      const bytes = await answer.Body!.transformToByteArray()
      if (answer.ETag === undefined || (answer.ContentLength ?? bytes.length) !== bytes.length)
        throw this.#unclear(`the reply for ${key} is incomplete`)
      return { value: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString(), mark: answer.ETag }
    } catch (error) {
      if (statusOf(error) === NOT_MODIFIED) return 'same'
      if (statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket') return null
      throw asHoldfastError(error, 's3:GetObject and s3:ListBucket', this.address)
    }
  }

  create(key: string, value: string): Promise<Mark | null> {
    return this.#put(key, value, { IfNoneMatch: '*' })
  }

  update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    return this.#put(key, value, { IfMatch: this.etagsAreBare ? mark.replaceAll('"', '') : mark })
  }

  async #put(key: string, value: string, condition: object): Promise<Mark | null> {
    try {
      const command = new this.#driver.PutObjectCommand({
        ...this.#at(key),
        Body: Buffer.from(value),
        ContentType: 'application/json',
        ...condition,
      })
      const { ETag: mark } = await this.#client.send(command)
      if (mark === undefined) throw this.#unclear(`the reply for ${key} has no etag`)
      return mark
    } catch (error) {
      const status = statusOf(error)
      // If-Match on a missing key: 404 from AWS, 412 from others.
      if (status === 412 || (status === 404 && nameOf(error) !== 'NoSuchBucket')) return null
      throw asHoldfastError(error, 's3:PutObject', this.address)
    }
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (let i = 0; i < keys.length; i += DELETES_AT_ONCE) await this.#deleteSome(keys.slice(i, i + DELETES_AT_ONCE))
  }

  async #deleteSome(keys: readonly string[]): Promise<void> {
    try {
      if (keys.length === 1) {
        await this.#client.send(new this.#driver.DeleteObjectCommand(this.#at(keys[0]!)))
        return
      }
      const command = new this.#driver.DeleteObjectsCommand({
        Bucket: this.#place.bucket,
        Delete: { Objects: keys.map((key) => ({ Key: this.#place.prefix + key })), Quiet: true },
      })
      const { Errors: errors = [] } = await this.#client.send(command)
      if (errors.length > 0) throw this.#failedDeletes(errors)
    } catch (error) {
      if (statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket') return
      throw asHoldfastError(error, 's3:DeleteObject', this.address)
    }
  }

  /** The request succeeded as a whole, but each key has a result of its own. */
  #failedDeletes(errors: readonly { readonly Code?: string | undefined }[]): Error {
    const denied = errors.find(({ Code: code }) => code === 'AccessDenied')
    return denied === undefined
      ? this.#unclear(`${errors.length} deletes failed, the first with ${errors[0]!.Code}`)
      : Object.assign(new Error('Access Denied'), { name: denied.Code!, $metadata: { httpStatusCode: 403 } })
  }

  /** Some servers return fewer keys than requested, so only the token shows whether there are more. */
  async list(prefix: string, { after, limit }: ListRange): Promise<string[]> {
    const keys: string[] = []
    for (let page: Page = await this.#page(prefix, { limit, ...(after === undefined ? null : { after }) }); ; ) {
      for (const { key } of page.found) keys.push(key)
      if (page.token === null || keys.length >= limit) return keys
      const rest = { limit: limit - keys.length, token: page.token }
      page = await this.#retryPage(() => this.#page(prefix, rest))
    }
  }

  /** Repeats a single page. Otherwise a long list over a bad line would never finish. */
  async #retryPage<T>(call: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await call()
      } catch (error) {
        if (tries === PAGE_TRIES || !isContactLost(error)) throw error
        await sleep(Math.random() * FIRST_WAIT * 2 ** tries)
      }
    }
  }

  async *listWritten(prefix: string, since: Instant): AsyncGenerator<readonly string[]> {
    for (let page: Page = await this.#page(prefix, { limit: LIST_PAGE }); ; ) {
      yield page.found.filter(({ writtenAt }) => writtenAt >= since - SECOND).map(({ key }) => key)
      if (page.token === null) return
      const rest = { limit: LIST_PAGE, token: page.token }
      page = await this.#retryPage(() => this.#page(prefix, rest))
    }
  }

  async #page(prefix: string, { limit, after, token }: ListRange & { readonly token?: string }): Promise<Page> {
    const { bucket, prefix: own } = this.#place
    try {
      const command = new this.#driver.ListObjectsV2Command({
        Bucket: bucket,
        Prefix: own + prefix,
        MaxKeys: limit,
        ...(token === undefined ? null : { ContinuationToken: token }),
        ...(after === undefined ? null : { StartAfter: own + after }),
      })
      const {
        Contents: contents = [],
        IsTruncated: isCut,
        NextContinuationToken: next,
      } = await this.#client.send(command)
      if (isCut && next === undefined) throw this.#unclear('a list was truncated without a continuation token')
      return {
        found: contents.map(({ Key: key, LastModified: at }) => ({
          key: key!.slice(own.length),
          writtenAt: at?.getTime() ?? Number.POSITIVE_INFINITY,
        })),
        token: isCut ? next! : null,
      }
    } catch (error) {
      throw asHoldfastError(error, 's3:ListBucket', this.address)
    }
  }

  /** From recent replies. A request is sent only after a silence, or where all replies were so late that they tell little. */
  async now(): Promise<{ at: Instant; uncertainty: number }> {
    const mono = performance.now()
    const isVague = this.#clock.isVague(mono) && mono - this.#askedAt > ASK_AGAIN
    if (isVague || this.#clock.age(mono) > CLOCK_LIFE) {
      this.#askedAt = mono
      await this.list('holdfast.json', { limit: 1 })
    }
    return this.#clock.read(performance.now())
  }

  async close(): Promise<void> {
    this.#client.destroy()
  }

  #unclear(what: string): HoldfastError {
    return new HoldfastError('STORE_UNAVAILABLE', `${this.address}: ${what}`)
  }
}
