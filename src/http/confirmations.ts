/** What is about many tasks is looked at first: the preview gives a token, and the deed needs it. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { DoorError } from './errors.ts'

const LIFETIME = 600_000

export class Confirmations {
  readonly #secret: Buffer
  readonly #now: () => number

  constructor(secret: Buffer = randomBytes(32), now: () => number = Date.now) {
    this.#secret = secret
    this.#now = now
  }

  /** For `deed` on what `which` names, for ten minutes. */
  give(deed: string, which: unknown): string {
    const until = (this.#now() + LIFETIME).toString(36)
    return `${until}.${this.#sign(deed, which, until)}`
  }

  /** NOT_CONFIRMED unless it was given for exactly this, and lately. */
  demand(deed: string, which: unknown, given: unknown): void {
    const [until = '', signature = ''] = typeof given === 'string' ? given.split('.') : []
    const expected = Buffer.from(this.#sign(deed, which, until))
    const shown = Buffer.from(signature)
    const isRight = shown.length === expected.length && timingSafeEqual(shown, expected)
    if (!isRight || Number.parseInt(until, 36) < this.#now()) throw new DoorError('NOT_CONFIRMED')
  }

  #sign(deed: string, which: unknown, until: string): string {
    return createHmac('sha256', this.#secret)
      .update(JSON.stringify([deed, which, until]))
      .digest('base64url')
  }
}
