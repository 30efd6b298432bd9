/** All calls to the server. URLs are relative to the page, so that it works under any mount path. */

const ROOT = new URL('api/v1', document.baseURI.replace(/[?#].*$/, ''))

export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: string
  readonly fix: string
  readonly status: number

  constructor(status: number, code: string, message: string, fix: string) {
    super(message)
    this.status = status
    this.code = code
    this.fix = fix
  }
}

type Query = Readonly<Record<string, string | number | undefined>>

export const addressOf = (path: string, query: Query = {}): string => {
  const url = new URL(ROOT)
  url.pathname += path
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
  }
  return url.href
}

/** Encodes one segment of a path. */
export const part = (text: string): string => encodeURIComponent(text)

/** A read that takes longer is given up: nothing waits forever for a server that stands still. */
const LONGEST_READ = 30_000

export const get = <T>(path: string, query?: Query, longest = LONGEST_READ): Promise<T> => {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), longest)
  return call<T>('GET', addressOf(path, query), undefined, late.signal).finally(() => clearTimeout(timer))
}

export const post = <T>(path: string, body: object = {}): Promise<T> => call<T>('POST', addressOf(path), body)

export const patch = <T>(path: string, body: object): Promise<T> => call<T>('PATCH', addressOf(path), body)

export const remove = (path: string): Promise<unknown> => call('DELETE', addressOf(path))

const noAnswer = (): never => {
  throw new ApiError(0, 'NO_ANSWER', 'The server does not answer.', 'Is `holdfast serve` still running?')
}

const call = async <T>(
  method: string,
  address: string,
  body?: object,
  signal: AbortSignal | null = null,
): Promise<T> => {
  const response = await fetch(address, {
    method,
    signal,
    ...(body === undefined ? null : { body: JSON.stringify(body) }),
    headers: { accept: 'application/json', ...(method === 'GET' ? null : { 'content-type': 'application/json' }) },
  }).catch(noAnswer)
  if (response.status === 204) return undefined as T
  const answer = parsed(await response.text().catch(noAnswer))
  if (response.ok && answer !== null) return answer as T
  const { error } = (answer ?? {}) as { error?: { code: string; message: string; fix: string } }
  throw new ApiError(
    response.status,
    error?.code ?? `HTTP_${response.status}`,
    error?.message ?? `The server answered ${response.status}${answer === null ? ', but not with JSON' : ''}.`,
    error?.fix ?? (answer === null ? 'If a proxy in front of the server asks you to log in, reload the page.' : ''),
  )
}

/** null where it is no JSON: a proxy may answer instead of the server. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
