/** Authenticates callers and determines their rights. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { HoldfastError } from '../../index.ts'
import { RIGHTS, type Right } from '../route.ts'

export interface Access {
  readonly rights: readonly Right[]
  /** The browser sends the credential automatically (a cookie), so a change must also prove which page sent it. */
  readonly ambient?: boolean
}

/** Returns null for an unknown caller. There is no default: the application must decide who has access. */
export type Authorize = (request: Request) => Access | null | Promise<Access | null>

export const EVERYTHING: readonly Right[] = RIGHTS
/** Read access without changes and without payloads. */
export const VIEWER: readonly Right[] = ['read']
export const WORKER: readonly Right[] = ['read', 'payloads', 'submit', 'work']

/** Shorter tokens are refused. A generated token has 43 random characters. */
const SHORTEST_TOKEN = 24

const digest = (label: string, text: string): Buffer => createHash('sha256').update(`${label}:${text}`).digest()

/** Compares digests, so that the time reveals neither the position of a difference nor the length. */
const isSame = (a: Buffer, b: Buffer): boolean => timingSafeEqual(a, b)

export interface Token {
  readonly token: string
  readonly rights: readonly Right[]
}

interface Known {
  readonly digest: Buffer
  /** The value of the cookie, which stands for the token. */
  readonly session: string
  readonly sessionDigest: Buffer
  readonly rights: readonly Right[]
}

/** `Authorization: Bearer TOKEN`, or the cookie that `login` set for it. */
export class Tokens {
  readonly #known: readonly Known[]
  /** Cookies ignore ports, so two servers on one host need different names. */
  readonly cookieName: string

  constructor(tokens: readonly Token[]) {
    for (const { token } of tokens) checkToken(token)
    this.#known = tokens.map(({ token, rights }) => {
      const session = digest('session', token).toString('base64url')
      return { digest: digest('token', token), session, sessionDigest: digest('token', session), rights }
    })
    this.cookieName = `holdfast-${digest('name', tokens.map(({ token }) => token).join())
      .toString('hex')
      .slice(0, 8)}`
  }

  readonly authorize: Authorize = (request) => {
    const bearer = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(request.headers.get('authorization') ?? '')?.[1]
    if (bearer !== undefined) {
      const rights = this.#find(bearer, ({ digest: known }) => known)?.rights
      return rights === undefined ? null : { rights }
    }
    const cookie = cookieOf(request, this.cookieName)
    const rights = cookie === null ? undefined : this.#find(cookie, ({ sessionDigest }) => sessionDigest)?.rights
    return rights === undefined ? null : { rights, ambient: true }
  }

  /** The Set-Cookie header for a valid token, otherwise null. */
  login(token: string, isSecure: boolean): string | null {
    const session = this.#find(token, ({ digest: known }) => known)?.session
    return session === undefined ? null : this.#cookie(session, isSecure, '')
  }

  logout(isSecure: boolean): string {
    return this.#cookie('', isSecure, '; Max-Age=0')
  }

  #cookie(value: string, isSecure: boolean, more: string): string {
    return `${this.cookieName}=${value}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}${more}`
  }

  /** Compares all tokens, so that the time does not reveal which one matches. */
  #find(shown: string, of: (known: Known) => Buffer): Known | undefined {
    const given = digest('token', shown)
    let found: Known | undefined
    for (const known of this.#known) if (isSame(given, of(known))) found = known
    return found
  }
}

const checkToken = (token: string): string => {
  if (/^[\x21-\x7e]+$/.test(token) && token.length >= SHORTEST_TOKEN && token.length <= 512) return token
  throw new HoldfastError(
    'INVALID_OPTION',
    `a token must be ${SHORTEST_TOKEN} to 512 printable characters without spaces: make one with \`openssl rand -base64 32\``,
    { field: 'token' },
  )
}

/**
 * For a server that only an authenticating reverse proxy can reach; the proxy names the user in a header. A caller that reaches
 * the server without the proxy can forge the header.
 */
export const behindProxy =
  (header: string, rightsOf: (user: string) => readonly Right[] = () => EVERYTHING): Authorize =>
  (request) => {
    const user = request.headers.get(header)?.trim()
    return user ? { rights: rightsOf(user) } : null
  }

/** Only for loopback: every user of this machine has all rights. */
export const everybody: Authorize = () => ({ rights: EVERYTHING })

const cookieOf = (request: Request, name: string): string | null => {
  for (const part of (request.headers.get('cookie') ?? '').split(';')) {
    const [key, value] = part.trim().split('=', 2)
    if (key === name && value) return value
  }
  return null
}
