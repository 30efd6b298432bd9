/** Browsers that have logged in. Kept in this process: a restart logs everybody out. */
import { createHash, randomBytes } from 'node:crypto'

/** Without a request for this long it is over; an open dashboard asks every few seconds. */
const IDLE = 12 * 3_600_000
/** From the login on, however much it is used. */
const LONGEST = 7 * 24 * 3_600_000
/** The oldest one makes room. */
const MOST = 1_000
const SWEEP_EVERY = 60_000

export interface Session<Owner> {
  /** Public: it names the session, and opens nothing. */
  readonly id: string
  readonly owner: Owner
  readonly startedAt: number
  readonly seenAt: number
  /** Aborts when it is over: then its streams end. */
  readonly ended: AbortSignal
}

interface Kept<Owner> {
  readonly id: string
  readonly owner: Owner
  readonly startedAt: number
  seenAt: number
  readonly end: AbortController
}

const shown = <Owner>({ end, ...session }: Kept<Owner>): Session<Owner> => ({ ...session, ended: end.signal })

const digestOf = (secret: string): string => createHash('sha256').update(secret).digest('base64url')

export class Sessions<Owner> {
  /** By the digest of the secret in the cookie, so that no dump of the memory's keys opens a session. */
  readonly #kept = new Map<string, Kept<Owner>>()
  readonly #now: () => number
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** The secret for the cookie. */
  begin(owner: Owner): string {
    const secret = randomBytes(32).toString('base64url')
    const now = this.#now()
    this.#sweep(now, 0)
    const [oldest] = this.#kept.keys()
    if (oldest !== undefined && this.#kept.size >= MOST) this.#end(oldest)
    const id = randomBytes(9).toString('base64url')
    this.#kept.set(digestOf(secret), { id, owner, startedAt: now, seenAt: now, end: new AbortController() })
    return secret
  }

  /** null if it is unknown or over. */
  find(secret: string): Session<Owner> | null {
    const now = this.#now()
    this.#sweep(now, SWEEP_EVERY)
    const key = digestOf(secret)
    const kept = this.#kept.get(key)
    if (kept === undefined) return null
    if (isOver(kept, now)) {
      this.#end(key)
      return null
    }
    kept.seenAt = now
    return shown(kept)
  }

  /** The latest first. */
  list(): readonly Session<Owner>[] {
    this.#sweep(this.#now(), 0)
    return [...this.#kept.values()].map(shown).reverse()
  }

  /** False if there is none. */
  end(id: string): boolean {
    for (const [key, kept] of this.#kept) {
      if (kept.id !== id) continue
      this.#end(key)
      return true
    }
    return false
  }

  #end(key: string): void {
    this.#kept.get(key)?.end.abort()
    this.#kept.delete(key)
  }

  #sweep(now: number, every: number): void {
    if (now - this.#sweptAt < every) return
    this.#sweptAt = now
    for (const [key, kept] of this.#kept) if (isOver(kept, now)) this.#end(key)
  }
}

const isOver = ({ startedAt, seenAt }: { readonly startedAt: number; readonly seenAt: number }, now: number): boolean =>
  now - seenAt >= IDLE || now - startedAt >= LONGEST
