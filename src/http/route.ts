/** What a route is: one row that says who may call it, what goes in, what comes out, and what it does. openapi.ts prints the rows. */
import type { Client, Code } from '../index.ts'
import type { Claims } from './claiming.ts'
import type { Confirmations } from './confirmations.ts'
import type { Deeds } from './deeds.ts'
import type { Feed } from './feed.ts'
import type { Schema } from './schemas.ts'
import type { Showing } from './showing.ts'
import type { DoorCode } from './statuses.ts'

/**
 * What a caller may do. `read`: look, without payloads. `payloads`: see inputs, outputs, progress and errors. `submit`: put
 * tasks in. `operate`: move tasks, queues and schedules. `work`: claim and finish.
 */
export const RIGHTS = ['read', 'payloads', 'submit', 'operate', 'work'] as const
export type Right = (typeof RIGHTS)[number]

export interface Call {
  readonly client: Client
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** Checked against the route's schema. */
  readonly body: Readonly<Record<string, unknown>>
  readonly rights: ReadonlySet<Right>
  readonly readOnly: boolean
  readonly showing: Showing
  readonly feed: Feed
  readonly confirmations: Confirmations
  readonly deeds: Deeds
  readonly claims: Claims
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal
}

interface RouteRow {
  readonly method: 'get' | 'post' | 'patch' | 'delete'
  /** As OpenAPI writes it: /tasks/{id}. */
  readonly path: string
  /** The operation's id: what a generated client calls it. */
  readonly name: string
  readonly summary: string
  readonly right: Right
  /** Moves nothing, though it is a POST. */
  readonly harmless?: boolean
  readonly query?: Readonly<Record<string, Schema>>
  readonly body?: Schema
  /** Of what it may refuse; what every route may answer is added. */
  readonly refuses?: readonly (Code | DoorCode)[]
}

/** Answers JSON; `null` is 204. */
export interface JsonRoute extends RouteRow {
  readonly status?: 200 | 201 | 202
  readonly answer: Schema | null
  run(call: Call): Promise<unknown>
}

/** Answers a stream of events. */
interface StreamRoute extends RouteRow {
  readonly events: Readonly<Record<string, Schema>>
  stream(call: Call): ReadableStream<Uint8Array>
}

export type Route = JsonRoute | StreamRoute
