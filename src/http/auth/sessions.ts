/** Browsers that have logged in. Kept in this process: a restart logs everybody out. */
import { createHash, randomBytes } from 'node:crypto'

/** A session ends after this long without a request. An open dashboard sends one every few seconds. */
const IDLE = 12 * 3_600_000
/** A session ends this long after the login, however much it is used. */
const LONGEST = 7 * 24 * 3_600_000
/** With more sessions than this, the oldest one ends. */
const MOST = 1_000
const SWEEP_EVERY = 60_000

export interface Session<Owner> {
  /** Public: it identifies the session, but gives no access. */
  readonly id: string
  readonly owner: Owner
  readonly startedAt: number
  readonly seenAt: number
  /** Aborts when the session ends, which closes its streams. */
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
  /** Keyed by the digest of the secret in the cookie, so that these keys alone do not open a session. */
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

  /** Returns null if the session is unknown or has ended. */
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

  /** Returns false if there is no such session. */
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
