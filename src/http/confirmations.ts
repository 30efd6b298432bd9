/** Bulk actions require a preview: it returns a token that the action must present. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { API } from './route.ts'
import { HttpError } from './wire/errors.ts'

const LIFETIME = 600_000

export class Confirmations {
  readonly #secret: Buffer
  readonly #now: () => number

  constructor(secret: Buffer = randomBytes(32), now: () => number = Date.now) {
    this.#secret = secret
    this.#now = now
  }

  /** A token for `action` on the selection `which`, valid for ten minutes. */
  give(action: string, which: unknown): string {
    const until = (this.#now() + LIFETIME).toString(36)
    return `${until}.${this.#sign(action, which, until)}`
  }

  /** Throws NOT_CONFIRMED, which names the preview's route, unless the token is for exactly this action and selection, and has not expired. */
  demand(action: string, which: unknown, given: unknown, previewPath: string): void {
    const [until = '', signature = ''] = typeof given === 'string' ? given.split('.') : []
    const expected = Buffer.from(this.#sign(action, which, until))
    const shown = Buffer.from(signature)
    const isRight = shown.length === expected.length && timingSafeEqual(shown, expected)
    if (!isRight || Number.parseInt(until, 36) < this.#now())
      throw new HttpError(
        'NOT_CONFIRMED',
        `this needs the \`confirm\` that POST ${API}${previewPath} returns for the same query, not older than ten minutes`,
      )
  }

  #sign(action: string, which: unknown, until: string): string {
    return createHmac('sha256', this.#secret)
      .update(JSON.stringify([action, which, until]))
      .digest('base64url')
  }
}
