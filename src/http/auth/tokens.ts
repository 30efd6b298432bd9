/** Tokens: named secrets with rights. A browser exchanges one for a session. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { HoldfastError } from '../../index.ts'
import { RIGHTS, type Right } from '../route.ts'
import type { Access, Authorize } from './access.ts'
import { type Session, Sessions } from './sessions.ts'

/** A secret, and the rights of a caller that presents it. */
export interface Token {
  /** 24 to 512 characters. */
  readonly token: string
  /** `VIEWER`, `OPERATOR`, `WORKER`, `EVERYTHING`, or a list of your own. */
  readonly rights: readonly Right[]
  /** The name of its caller in histories, pauses and jobs. Default: the name of the client. */
  readonly name?: string
  /** The only queues from which it may claim and to which it may submit. Only for the rights `work` and `submit`. */
  readonly queues?: readonly string[]
}

type Known = Omit<Token, 'token'> & { readonly digest: Uint8Array }

/** Shorter tokens are refused. A generated token has 43 random characters. */
const SHORTEST = 24
const LONGEST = 512
const LONGEST_NAME = 128

const digestOf = (label: string, text: string): Buffer => createHash('sha256').update(`${label}:${text}`).digest()

/** `Authorization: Bearer TOKEN`, or the cookie of a session that `login` began. */
export class Tokens {
  readonly #known: readonly Known[]
  readonly sessions: Sessions<Known>
  /** Cookies ignore ports, so two servers on one host need different names. */
  readonly cookieName: string

  constructor(tokens: readonly Token[], { now = Date.now }: { readonly now?: () => number } = {}) {
    for (const token of tokens) checkToken(token)
    this.#known = tokens.map(({ token, ...rest }) => ({ ...rest, digest: digestOf('token', token) }))
    this.sessions = new Sessions(now)
    const all = digestOf('name', tokens.map(({ token }) => token).join()).toString('hex')
    this.cookieName = `holdfast-${all.slice(0, 8)}`
  }

  readonly authorize: Authorize = (request) => {
    const bearer = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(request.headers.get('authorization') ?? '')?.[1]
    if (bearer !== undefined) {
      const known = this.#find(bearer)
      return known === undefined ? null : accessOf(known)
    }
    const session = this.#sessionOf(request)
    return session === null ? null : { ...accessOf(session.owner), ambient: true, session }
  }

  /** The Set-Cookie header for a valid token, otherwise null. */
  login(token: string, isSecure: boolean): string | null {
    const known = this.#find(token)
    return known === undefined ? null : this.#cookie(this.sessions.begin(known), isSecure, '')
  }

  /** Ends the session, and removes the cookie. */
  logout(request: Request, isSecure: boolean): string {
    const session = this.#sessionOf(request)
    if (session !== null) this.sessions.end(session.id)
    return this.#cookie('', isSecure, '; Max-Age=0')
  }

  #sessionOf(request: Request): Session<Known> | null {
    const cookie = cookieOf(request, this.cookieName)
    return cookie === null ? null : this.sessions.find(cookie)
  }

  #cookie(value: string, isSecure: boolean, more: string): string {
    return `${this.cookieName}=${value}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}${more}`
  }

  /** Compares the digests of all tokens, so that the time reveals neither which one matches nor the position of a difference. */
  #find(shown: string): Known | undefined {
    const given = digestOf('token', shown)
    let found: Known | undefined
    for (const known of this.#known) if (timingSafeEqual(given, known.digest)) found = known
    return found
  }
}

const accessOf = ({ rights, name, queues }: Known): Access => ({
  rights,
  ...(name === undefined ? null : { name }),
  ...(queues === undefined ? null : { queues }),
})

const checkToken = ({ token, name, queues, rights }: Token): void => {
  if (typeof token !== 'string') throw refused('token', `a token is ${String(token)}: is its environment variable set?`)
  const unknown = rights.find((right) => !RIGHTS.includes(right))
  if (unknown !== undefined) throw refused('rights', `'${unknown}' is not a right: they are ${RIGHTS.join(', ')}`)
  if (!/^[\x21-\x7e]+$/.test(token) || token.length < SHORTEST || token.length > LONGEST)
    throw refused(
      'token',
      `a token must be ${SHORTEST} to ${LONGEST} printable characters without spaces: make one with \`openssl rand -base64 32\``,
    )
  if (name !== undefined && (name === '' || name.length > LONGEST_NAME || /\p{C}/u.test(name)))
    throw refused('name', `the name of a token must be 1 to ${LONGEST_NAME} printable characters`)
  if (queues !== undefined && rights.some((right) => right !== 'work' && right !== 'submit'))
    throw refused('queues', 'queues limit a token that works or submits, and no other: other rights are for all queues')
}

const refused = (field: string, message: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', message, { field })

const cookieOf = (request: Request, name: string): string | null => {
  for (const part of (request.headers.get('cookie') ?? '').split(';')) {
    const [key, value] = part.trim().split('=', 2)
    if (key === name && value) return value
  }
  return null
}
