/** Builds every response, with the security headers for browsers. */

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "manifest-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

/** Plain data, so that a server can write it without creating an object for each. */
const SAFE = {
  'cache-control': 'no-store',
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

type Body = ConstructorParameters<typeof Response>[0]

export interface AnswerOptions {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

export const answer = (body: Body, { status = 200, headers = {} }: AnswerOptions = {}): Response =>
  new Response(body, { status, headers: { ...SAFE, ...headers } })

export const jsonAnswer = (value: unknown, { status = 200, headers = {} }: AnswerOptions = {}): Response =>
  answer(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } })
