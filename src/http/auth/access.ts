/** Identifies the caller of a request, and its rights. */
import type { Right } from '../route.ts'
import { EVERYTHING } from './roles.ts'
import type { Session } from './sessions.ts'

/** The rights and the identity of a caller. */
export interface Access {
  /** What it may do. */
  readonly rights: readonly Right[]
  /** The browser sends the credential automatically (a cookie), so a change must also prove which page sent it. */
  readonly ambient?: boolean
  /** The caller's name in histories, pauses and jobs. Default: the name of the client. */
  readonly name?: string
  /** The only queues from which it may claim and to which it may submit. Default: all. */
  readonly queues?: readonly string[]
  /** The session of a browser that has logged in with a token. */
  readonly session?: Pick<Session<unknown>, 'id' | 'ended'>
}

/** Returns null for an unknown caller. There is no default: the application must decide who has access. */
export type Authorize = (request: Request) => Access | null | Promise<Access | null>

const LONGEST_NAME = 100

/**
 * For a server that only an authenticating reverse proxy can reach; the proxy names the user in a header. A caller that reaches
 * the server without the proxy can forge the header.
 */
export const behindProxy =
  (header: string, rightsOf: (user: string) => readonly Right[] = () => EVERYTHING): Authorize =>
  (request) => {
    const user = request.headers.get(header)?.trim()
    return user ? { rights: rightsOf(user), name: `${user.slice(0, LONGEST_NAME)}@proxy` } : null
  }

/** Only for loopback: every user of this machine has all rights. */
export const everybody: Authorize = () => ({ rights: EVERYTHING, name: 'anonymous' })
