/** Which HTTP status each code has. docs/http.md is printed from these tables. */
import type { Code } from '../index.ts'

/** What only the door itself refuses, with words of its own. */
export const DOOR_CODES = {
  NOT_AUTHENTICATED: {
    status: 401,
    text: 'No valid credential came with the request.',
    fix: 'Send `Authorization: Bearer TOKEN` with the token of the server.',
  },
  NOT_ALLOWED: {
    status: 403,
    text: 'This credential does not have the right that the route needs.',
    fix: 'Use one that has it: the document at /openapi.json names the right of each route.',
  },
  READ_ONLY: {
    status: 403,
    text: 'The server is read-only.',
    fix: 'Use one that is not, or the command line.',
  },
  CROSS_SITE: {
    status: 403,
    text: 'The request came from a page of another site.',
    fix: 'Call from the same origin, or from a program that sends no Origin.',
  },
  WRONG_HOST: {
    status: 421,
    text: 'The server does not answer to this host name.',
    fix: 'Use the address that it printed, or start it with --host-name.',
  },
  NO_SUCH_ROUTE: {
    status: 404,
    text: 'There is nothing at this address.',
    fix: 'See /openapi.json for what there is.',
  },
  WRONG_METHOD: {
    status: 405,
    text: 'The address is right, the method is not.',
    fix: 'Use one of those in the Allow header.',
  },
  NOT_JSON: {
    status: 415,
    text: 'The body is not marked as JSON.',
    fix: 'Send `Content-Type: application/json`.',
  },
  NOT_CONFIRMED: {
    status: 409,
    text: 'Something about many tasks must be looked at before it is done.',
    fix: 'Ask with `dryRun: true` first, and send the `confirm` that comes back.',
  },
  TOO_MANY_VIEWERS: {
    status: 503,
    text: 'Too many streams are open.',
    fix: 'Close some: a server has room for 100.',
  },
} as const satisfies Record<string, { status: number; text: string; fix: string }>

export type DoorCode = keyof typeof DOOR_CODES

export const STATUSES = {
  INVALID_TASK: 400,
  INVALID_OPTION: 400,
  INVALID_DURATION: 400,
  INVALID_WORKER_ID: 400,
  OUTPUT_INVALID: 400,
  INVALID_EXPORT: 400,
  NO_HANDLER: 400,
  PAYLOAD_TOO_LARGE: 413,
  TASK_NOT_FOUND: 404,
  SCHEDULE_NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  IDEMPOTENCY_CONFLICT: 409,
  TASK_NOT_CLAIMED: 409,
  TASK_ALREADY_CLAIMED: 409,
  TASK_NOT_AVAILABLE: 409,
  TASK_EXPIRED: 409,
  TASK_COMPLETED: 409,
  TASK_FAILED: 409,
  TASK_CANCELLED: 409,
  TASK_ARCHIVED: 409,
  TASK_NOT_TERMINAL: 409,
  WRONG_WORKER: 409,
  STALE_LEASE: 409,
  CANNOT_CANCEL: 409,
  CANNOT_EXPIRE: 409,
  CANNOT_RETRY: 409,
  CANNOT_REPLAY: 409,
  CANNOT_UNARCHIVE: 409,
  MAX_ATTEMPTS_REACHED: 409,
  SCHEDULE_MOVED: 409,
  WORKERS_LIVE: 409,
  MOVE_UNDER_WAY: 409,
  QUEUE_PAUSED: 409,
  STORE_CONFLICT: 409,
  WAIT_TIMEOUT: 504,
  ABORTED: 499,
  STORE_CLOSED: 503,
  STORE_UNAVAILABLE: 503,
  STORE_BUSY: 503,
  STORE_FULL: 507,
  STORE_READ_ONLY: 500,
  STORE_CORRUPT: 500,
  STORE_NOT_FOUND: 500,
  STORE_IDENTITY_CHANGED: 500,
  SCHEMA_NEWER: 500,
  SCHEMA_OLDER: 500,
  DRIVER_MISSING: 500,
  INTERNAL: 500,
} as const satisfies Record<Code, number>
