/** Retries idempotent calls while contact with the store is lost. */
import { type HoldfastError, isContactLost, isUnconnected } from '../core/errors.ts'
import { fullJitter } from '../core/values/jitter.ts'
import { pause } from './clock.ts'
import type { Session } from './session.ts'

const WAITS = { first: 20, longest: 1_000 }
const TRIES = 5
/** No retry starts after this long: a store that does not answer has used up its own deadline by then. */
const PATIENCE = 10_000

export interface Patience {
  /** How long to retry while connections are refused: such a call had no effect, and a restarting server needs some seconds. Default: a few tries. */
  readonly whileRefused?: number
  /** Default 5. */
  readonly tries?: number
}

/** Tries a few times, then throws the last error. */
export const withPatience = async <T>(
  session: Session,
  call: () => Promise<T>,
  { whileRefused = 0, tries: most = TRIES }: Patience = {},
): Promise<T> => {
  const begun = session.clock.mono()
  for (let tries = 0; ; tries++) {
    try {
      return await call()
    } catch (error) {
      const took = session.clock.mono() - begun
      const isOver = isRefused(error) && took < whileRefused ? false : tries >= most - 1 || took > PATIENCE
      if (!isContactLost(error) || isOver) throw error
      await pause(session.clock, waitBefore(tries, session))
    }
  }
}

/** What a server says while it restarts, or is full for a moment. Other reasons, such as a wrong password, do not end by themselves. */
const REFUSED: ReadonlySet<unknown> = new Set(['refused', 'not-ready', 'too-many-connections'])

const isRefused = (error: unknown): boolean =>
  isUnconnected(error) && REFUSED.has((error as HoldfastError).details['reason'])

/** How long to wait before the next try. */
export const waitBefore = (tries: number, { random }: Session): number => fullJitter(WAITS, tries, random())
