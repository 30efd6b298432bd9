/** From whatever was thrown to a status and a body. */
import { CODES, type Code, HoldfastError } from '../index.ts'
import { jsonAnswer } from './answers.ts'
import { DOOR_CODES, type DoorCode, STATUSES } from './statuses.ts'

/** What the door itself refuses, before the library is asked. */
export class DoorError extends Error {
  override readonly name = 'DoorError'
  readonly code: DoorCode
  readonly headers: Readonly<Record<string, string>>

  constructor(code: DoorCode, message: string = DOOR_CODES[code].text, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.code = code
    this.headers = headers
  }
}

export interface ErrorBody {
  readonly error: {
    readonly code: Code | DoorCode
    readonly message: string
    readonly fix: string
    readonly details: Readonly<Record<string, unknown>>
  }
}

/** As a part of an answer about many tasks. */
export const errorOf = (thrown: unknown): ErrorBody['error'] => {
  if (thrown instanceof DoorError) {
    return { code: thrown.code, message: thrown.message, fix: DOOR_CODES[thrown.code].fix, details: {} }
  }
  if (thrown instanceof HoldfastError && thrown.code !== 'INTERNAL') {
    return { code: thrown.code, message: thrown.message, fix: CODES[thrown.code].fix, details: thrown.details }
  }
  // What went wrong inside is for the log: a caller gets no stack and no words of a driver.
  return { code: 'INTERNAL', message: CODES.INTERNAL.text, fix: 'Look into the log of the server.', details: {} }
}

export const statusOf = (thrown: unknown): number => {
  if (thrown instanceof DoorError) return DOOR_CODES[thrown.code].status
  return thrown instanceof HoldfastError ? STATUSES[thrown.code] : 500
}

export const errorResponse = (thrown: unknown): Response =>
  jsonAnswer({ error: errorOf(thrown) } satisfies ErrorBody, {
    status: statusOf(thrown),
    headers: thrown instanceof DoorError ? thrown.headers : {},
  })
