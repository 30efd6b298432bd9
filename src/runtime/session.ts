/** The state that all parts of one client share. */
import { randomBytes } from 'node:crypto'
import { HoldfastError } from '../core/errors.ts'
import type { Actor } from '../core/machine.ts'
import type { SubmitOptions } from '../core/submission.ts'
import type { Store } from '../store/store.ts'
import type { Clock, Random } from './clock.ts'
import type { Contact } from './contact.ts'
import type { HeldLeases } from './held-leases.ts'
import type { StoreTime } from './store-time.ts'
import type { Events } from './telemetry/events.ts'
import type { Logger } from './telemetry/logger.ts'
import type { Tracing } from './telemetry/tracing.ts'

export interface Session {
  readonly store: Store
  readonly contact: Contact
  readonly held: HeldLeases
  readonly clock: Clock
  readonly random: Random
  readonly time: StoreTime
  readonly events: Events
  readonly logger: Logger
  /** The name of this client in histories. */
  readonly name: string
  readonly maxPayload: number
  /** Defaults for every task that this client submits. Options of a definition or of a call override them. */
  readonly defaults: SubmitOptions
  /** null when this process records no spans. */
  readonly tracing: Tracing | null
}

const ofThisProcess = randomBytes(9).toString('base64url')
let count = 0

/** A short unique id: a random prefix of this process and a counter. */
export const newOp = (): string => `${ofThisProcess}-${(count++).toString(36)}`

/** For claims by hand: the token of one lease must not reveal that of another. */
export const newSecretOp = (): string => randomBytes(16).toString('base64url')

/** The client itself as the actor of a move, with a new operation id. */
export const actorOf = (session: Session, op: string = newOp()): Actor => ({
  now: session.time.now(),
  by: session.name,
  op,
})

export const notFound = (id: string): HoldfastError =>
  new HoldfastError('TASK_NOT_FOUND', `there is no task ${id}`, { id })
