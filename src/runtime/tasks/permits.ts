/** Permits of a rate: each rate is a document that holds one instant, and a process reserves from it before it claims. */
import { createHash } from 'node:crypto'
import { RATE } from '../../core/document-names.ts'
import { giveBack, type RateInForce, reserve } from '../../core/rate.ts'
import type { Instant } from '../../core/task.ts'
import type { Session } from '../session.ts'

export interface Permits {
  readonly count: number
  readonly notAfter: Instant
  /** When there will be another. */
  readonly next: Instant
  /** Those that found no task. */
  return(unused: number): Promise<void>
}

/** Another process cannot win every time; after these tries the next look goes on. */
const TRIES = 8
/** How soon to look again then. */
const CONTENDED = 20

export const queueRate = (queue: string): string => `${RATE}queue/${queue}`

/** A group may be any text, also one that is too long for a key. */
export const groupRate = (queue: string, group: string): string =>
  `${RATE}group/${createHash('sha256').update(`${queue}\n${group}`).digest('base64url')}`

interface Known {
  readonly free: Instant | null
  readonly version: number
}

export class PermitBook {
  readonly #session: Session
  /** As last read or written here, by name. */
  readonly #known = new Map<string, Known>()

  constructor(session: Session) {
    this.#session = session
  }

  async reserve(name: string, wanted: number, inForce: RateInForce): Promise<Permits> {
    const { store, time } = this.#session
    let known = this.#known.get(name) ?? (await this.#read(name))
    for (let tries = 0; tries < TRIES; tries++) {
      const { permits, free, notAfter, next } = reserve(known.free, time.now(), wanted, inForce)
      // Another process can only have taken more.
      if (permits === 0) return { count: 0, notAfter, next, return: async () => {} }
      const version = await store.documents.put(name, JSON.stringify({ free }), known.version)
      if (version !== null) {
        this.#remember(name, { free, version })
        return { count: permits, notAfter, next, return: (unused) => this.#return(name, unused, inForce) }
      }
      known = await this.#read(name)
    }
    const now = time.now()
    return { count: 0, notAfter: now, next: now + CONTENDED, return: async () => {} }
  }

  /** When there will be a permit; null: now. */
  async nextPermit(name: string, inForce: RateInForce): Promise<Instant | null> {
    const { free } = await this.#read(name)
    const { permits, next } = reserve(free, this.#session.time.now(), 1, inForce)
    return permits > 0 ? null : next
  }

  /** Unless another process has reserved since: then they are lost, as they would be a moment later anyway. Never rejects. */
  async #return(name: string, unused: number, inForce: RateInForce): Promise<void> {
    const known = this.#known.get(name)
    if (unused === 0 || known === undefined || known.free === null) return
    const free = giveBack(known.free, unused, inForce)
    try {
      const version = await this.#session.store.documents.put(name, JSON.stringify({ free }), known.version)
      if (version !== null) this.#remember(name, { free, version })
    } catch {
      this.#known.delete(name)
    }
  }

  async #read(name: string): Promise<Known> {
    const document = await this.#session.store.documents.get(name)
    const known = { free: document === null ? null : freeIn(document.value), version: document?.version ?? 0 }
    this.#remember(name, known)
    return known
  }

  #remember(name: string, known: Known): void {
    this.#known.delete(name)
    this.#known.set(name, known)
    if (this.#known.size > MOST_KNOWN) this.#known.delete(this.#known.keys().next().value!)
  }
}

const MOST_KNOWN = 10_000

const freeIn = (value: string): Instant | null => {
  try {
    const { free } = JSON.parse(value) as { free?: unknown }
    return typeof free === 'number' && Number.isFinite(free) ? free : null
  } catch {
    return null
  }
}
