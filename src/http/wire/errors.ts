/** Turns any thrown value into a status and a body. */
import { CODES, type Code, HoldfastError } from '../../index.ts'
import { jsonAnswer } from './answers.ts'
import { HTTP_CODES, type HttpCode, STATUSES } from './statuses.ts'

/** Errors of the HTTP handler itself, before the library is called. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly code: HttpCode
  readonly headers: Readonly<Record<string, string>>

  constructor(code: HttpCode, message: string = HTTP_CODES[code].text, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.code = code
    this.headers = headers
  }
}

export interface ErrorBody {
  readonly error: {
    readonly code: Code | HttpCode
    readonly message: string
    readonly fix: string
    readonly details: Readonly<Record<string, unknown>>
  }
}

/** The error as part of an answer about many tasks. */
export const errorOf = (thrown: unknown): ErrorBody['error'] => {
  if (thrown instanceof HttpError) {
    return { code: thrown.code, message: thrown.message, fix: HTTP_CODES[thrown.code].fix, details: {} }
  }
  if (thrown instanceof HoldfastError && thrown.code !== 'INTERNAL') {
    return { code: thrown.code, message: thrown.message, fix: CODES[thrown.code].fix, details: thrown.details }
  }
  // Internal errors go to the log: a caller gets no stack and no driver message.
  return { code: 'INTERNAL', message: CODES.INTERNAL.text, fix: 'See the log of the server.', details: {} }
}

export const statusOf = (thrown: unknown): number => {
  if (thrown instanceof HttpError) return HTTP_CODES[thrown.code].status
  return thrown instanceof HoldfastError ? STATUSES[thrown.code] : 500
}

export const errorResponse = (thrown: unknown): Response =>
  jsonAnswer({ error: errorOf(thrown) } satisfies ErrorBody, {
    status: statusOf(thrown),
    headers: thrown instanceof HttpError ? thrown.headers : {},
  })
