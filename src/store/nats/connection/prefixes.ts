/** Subject prefixes of a connection: for replies, and for the JetStream API. */
import { randomUUID } from 'node:crypto'
import type { NatsConnection } from '@nats-io/transport-node'

export interface Prefixes {
  /** `_INBOX`, or the prefix that the user's permissions allow. */
  readonly inbox: string
  /** `$JS.API`, or `$JS.{domain}.API`. */
  readonly api: string
}

const DEFAULT_API = '$JS.API'

const prefixes = new WeakMap<NatsConnection, Prefixes>()

export const prefixesFor = (inboxPrefix = '_INBOX', domain?: string): Prefixes => ({
  inbox: inboxPrefix,
  api: domain === undefined ? DEFAULT_API : `$JS.${domain}.API`,
})

/** Called once for each connection. */
export const setPrefixes = (nc: NatsConnection, own: Prefixes): void => void prefixes.set(nc, own)

const of = (nc: NatsConnection): Prefixes => prefixes.get(nc) ?? prefixesFor()

/** A subject that no other client subscribes to. */
export const newInbox = (nc: NatsConnection): string => `${of(nc).inbox}.${randomUUID()}`

/** The full subject of an API call such as `STREAM.INFO.name`. */
export const apiSubject = (nc: NatsConnection, call: string): string => `${of(nc).api}.${call}`

/** Servers forward `$KV` to another domain only under that domain's own prefix. */
export const writeSubject = (nc: NatsConnection, subject: string): string => {
  const { api } = of(nc)
  return api !== DEFAULT_API && subject.startsWith('$KV.') ? `${api}.${subject}` : subject
}
