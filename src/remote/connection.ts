/** Sends requests to a Holdfast server, repeats those that are safe to repeat, and turns refusals into HoldfastErrors. */
import { CODES, type Code, HoldfastError } from '../core/errors.ts'
import { errorLine } from '../core/values/error-line.ts'
import { fullJitter } from '../core/values/jitter.ts'
import { checkOptionNames } from '../core/values/option-names.ts'
import { failureOf } from './failure.ts'

/** How the HTTP API is reached: the address, the token, `fetch`. */
export interface RemoteOptions {
  /** The address of the server: `https://queue.example.com`, or where the handler is mounted. */
  readonly url: string
  /** Sent as `Authorization: Bearer …`. A function is asked before each request, so that tokens can be renewed. */
  readonly token?: string | (() => string | Promise<string>)
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Default: the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>
  /** How often a request that is safe to repeat is sent again after a failure. Default 4. */
  readonly retries?: number
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined
  /** The request has the same effect when it is sent twice. */
  readonly isRepeatable?: boolean
}

const OPTIONS: ReadonlySet<string> = new Set<keyof RemoteOptions>(['url', 'token', 'headers', 'fetch', 'retries'])
const PAUSES = { first: 200, longest: 5_000 }

export class Connection {
  readonly #base: string
  readonly #options: RemoteOptions

  constructor(options: RemoteOptions) {
    if (typeof options === 'string') throw invalidUrl('goes into an object: connectRemote({ url })')
    checkOptionNames(options, OPTIONS, 'connectRemote')
    if (!/^https?:\/\//.test(options.url)) throw invalidUrl('must begin with http:// or https://')
    this.#base = `${options.url.replace(/\/+$/, '')}/api/v1`
    this.#options = options
  }

  /** The body of the answer. */
  async call<Answer>(
    method: string,
    path: string,
    body?: unknown,
    { signal, isRepeatable = method === 'GET' }: RequestOptions = {},
  ): Promise<Answer> {
    const { retries = 4 } = this.#options
    for (let tries = 0; ; tries++) {
      try {
        return (await this.#once(method, path, body, signal)) as Answer
      } catch (error) {
        if (signal?.aborted) throw new HoldfastError('ABORTED', 'the call was aborted', {}, error)
        if (!(error instanceof HoldfastError) || !isPassing(error) || !isRepeatable || tries >= retries) throw error
        await pause(fullJitter(PAUSES, tries, Math.random()), signal)
      }
    }
  }

  async #once(method: string, path: string, body: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    const { token, headers, fetch: send = fetch } = this.#options
    const credential = typeof token === 'function' ? await token() : token
    const request = new Request(this.#base + path, {
      method,
      headers: {
        ...(credential === undefined ? null : { authorization: `Bearer ${credential}` }),
        ...(body === undefined ? null : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? null : { body: JSON.stringify(body) }),
      ...(signal === undefined ? null : { signal }),
    })
    let response: Response
    let text: string
    try {
      response = await send(request)
      text = await response.text()
    } catch (error) {
      const why = errorLine(failureOf(error))
      throw new HoldfastError('STORE_UNAVAILABLE', `${this.#base} cannot be reached: ${why}`, {}, error)
    }
    if (response.ok) return text === '' ? undefined : JSON.parse(text)
    throw errorOf(response.status, text)
  }
}

const invalidUrl = (why: string): HoldfastError => new HoldfastError('INVALID_OPTION', `url ${why}`, { field: 'url' })

interface ErrorBody {
  readonly error?: { readonly code: string; readonly message: string; readonly details?: Record<string, unknown> }
}

const errorOf = (status: number, text: string): HoldfastError => {
  const { error } = parsed(text)
  const details = { ...error?.details, status }
  if (error !== undefined && error.code in CODES) return new HoldfastError(error.code as Code, error.message, details)
  const said = error?.message ?? `the server answered with ${status}`
  // A proxy, or a server that starts.
  if (status >= 500 || status === 429) return new HoldfastError('STORE_UNAVAILABLE', said, details)
  return new HoldfastError('STORE_REFUSED', said, {
    ...details,
    ...(error === undefined ? null : { httpCode: error.code }),
    advice: 'Check the address of the server, and the token and its rights.',
  })
}

const parsed = (text: string): ErrorBody => {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : {}
  } catch {
    return {}
  }
}

const PASSING: ReadonlySet<Code> = new Set<Code>(['STORE_UNAVAILABLE', 'STORE_BUSY', 'STORE_READ_ONLY'])
export const isPassing = (error: HoldfastError): boolean => PASSING.has(error.code)

/** Rejects if the signal aborts first. */
export const pause = (duration: number, signal?: AbortSignal): Promise<void> =>
  new Promise((done, fail) => {
    const stop = (): void => {
      clearTimeout(timer)
      fail(new HoldfastError('ABORTED', 'the call was aborted'))
    }
    if (signal?.aborted) return fail(new HoldfastError('ABORTED', 'the call was aborted'))
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      done()
    }, duration)
    signal?.addEventListener('abort', stop, { once: true })
  })
