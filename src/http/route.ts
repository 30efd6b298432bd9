/** A route is one row: its right, its input and output schemas, and its function. openapi.ts prints the rows. */
import type { Charts, Client, Code } from '../index.ts'
import type { Access } from './auth/access.ts'
import type { Sessions } from './auth/sessions.ts'
import type { BackgroundJobs } from './background-jobs.ts'
import type { Claims } from './claims.ts'
import type { Confirmations } from './confirmations.ts'
import type { Feed } from './live/feed.ts'
import type { Health } from './live/health.ts'
import type { Redaction } from './wire/redaction.ts'
import type { Schema } from './wire/schemas.ts'
import type { HttpCode } from './wire/statuses.ts'

/** The prefix of every path. */
export const API = '/api/v1'

/**
 * The rights of a caller. `read`: read, without payloads. `payloads`: see inputs, outputs, steps, signals, progress and errors. `submit`: submit
 * tasks. `signal`: send signals to tasks. `operate`: change tasks, queues and schedules. `work`: claim and finish tasks.
 */
export const RIGHTS = ['read', 'payloads', 'submit', 'signal', 'operate', 'work'] as const
/** The name of a right. */
export type Right = (typeof RIGHTS)[number]

export interface Call {
  readonly client: Client
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** Checked against the route's schema. */
  readonly body: Readonly<Record<string, unknown>>
  readonly rights: ReadonlySet<Right>
  readonly readOnly: boolean
  readonly redaction: Redaction
  readonly feed: Feed
  readonly charts: Charts
  readonly health: Health
  /** Who calls. `client` has the caller's name. */
  readonly access: Access
  /** null: there are no tokens to log in with. */
  readonly sessions: Sessions<{ readonly name?: string }> | null
  readonly confirmations: Confirmations
  readonly jobs: BackgroundJobs
  readonly claims: Claims
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal
}

interface RouteRow {
  readonly method: 'get' | 'post' | 'patch' | 'delete'
  /** As OpenAPI writes it: /tasks/{id}. */
  readonly path: string
  /** The operation's id, used by generated clients. */
  readonly name: string
  readonly summary: string
  readonly right: Right
  /** Changes nothing, although it is a POST. */
  readonly harmless?: boolean
  readonly query?: Readonly<Record<string, Schema>>
  readonly body?: Schema
  /** Its own error codes; those of every route are added. */
  readonly refuses?: readonly (Code | HttpCode)[]
}

/** Answers JSON; `null` is 204. */
export interface JsonRoute extends RouteRow {
  readonly status?: 200 | 201 | 202
  readonly answer: Schema | null
  /** Whether the answer is about something that existed: then the status is 200, not 201. */
  readonly isNotNew?: (answer: { readonly deduplicated?: boolean; readonly coalesced?: boolean }) => boolean
  run(call: Call): Promise<unknown>
}

/** Answers a stream of events. */
interface StreamRoute extends RouteRow {
  readonly events: Readonly<Record<string, Schema>>
  stream(call: Call): ReadableStream<Uint8Array>
}

export type Route = JsonRoute | StreamRoute
