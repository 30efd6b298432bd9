/** Answers reads: compressed for callers that take it, and with an ETag, so that a poll for what has not changed costs no bytes. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type AnswerOptions, answer } from './answers.ts'

const zip = promisify(gzip)
/** Smaller answers fit into one packet. */
const WORTH_IT = 1_400
/** Nearly as small as the default level, in half the time. */
const LEVEL = 4

export const takesGzip = (request: Request): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers.get('accept-encoding') ?? '')

/** Weak: the same answer has one tag, compressed or not. */
export const tagOf = (content: string | Uint8Array): string =>
  `W/"${createHash('sha1').update(content).digest('base64url')}"`

export const isKnown = (request: Request, tag: string): boolean =>
  (request.headers.get('if-none-match') ?? '').split(',').some((one) => one.trim() === tag || one.trim() === '*')

/** Changes answer small bodies to programs that are in a hurry: they get the text as it is. */
export const fitted = async (request: Request, text: string, { status, headers }: AnswerOptions): Promise<Response> => {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead) return answer(text, { ...(status && { status }), ...(headers && { headers }) })
  const etag = tagOf(text)
  const shared = { ...headers, etag, vary: 'accept-encoding' }
  if (isKnown(request, etag)) return answer(null, { status: 304, headers: shared })
  const isZipped = text.length > WORTH_IT && takesGzip(request)
  const body = isZipped ? new Uint8Array(await zip(text, { level: LEVEL })) : text
  return answer(body, {
    ...(status && { status }),
    headers: { ...shared, ...(isZipped && { 'content-encoding': 'gzip' }) },
  })
}
