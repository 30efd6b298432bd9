/** Reads the body of a request: JSON of limited size. The library limits the depth of a payload. */
import { HoldfastError } from '../../index.ts'
import { HttpError } from './errors.ts'

/** An object, empty when there is no body: then it needs no content type. */
export const readBody = async (request: Request, limit: number): Promise<Readonly<Record<string, unknown>>> => {
  const type = request.headers.get('content-type')
  const isJson = type !== null && /^application\/json\s*(;|$)/i.test(type)
  if (type !== null && !isJson) throw new HttpError('NOT_JSON')
  const text = await readText(request, limit)
  if (text === '') return {}
  if (!isJson) throw new HttpError('NOT_JSON')
  const body = parsed(text)
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Record<string, unknown>
  throw refused('must be an object')
}

const readText = async (request: Request, limit: number): Promise<string> => {
  const announced = request.headers.get('content-length')
  if (Number(announced ?? 0) > limit) throw tooLarge(limit)
  // The server that reads the connection enforces Content-Length.
  const bytes = announced === null ? await readChunks(request, limit) : new Uint8Array(await request.arrayBuffer())
  if (bytes.byteLength > limit) throw tooLarge(limit)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw refused('is not UTF-8')
  }
}

/** Counts the bytes as they arrive. */
const readChunks = async (request: Request, limit: number): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength
    if (length > limit) throw tooLarge(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw refused('is not JSON')
  }
}

const tooLarge = (limit: number): HoldfastError =>
  new HoldfastError('PAYLOAD_TOO_LARGE', `the body is over the limit of ${limit} bytes`, { field: 'body', limit })

const refused = (why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `the body ${why}`, { field: 'body' })
