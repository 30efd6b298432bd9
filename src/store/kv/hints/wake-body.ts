/** The text of the wake object: the last announced hints, and how often watched documents changed. */
import { newNonce } from '../records/bodies.ts'

export interface WakeBody {
  /** Changes when the object is deleted and created again. The sequence then starts from 0. */
  readonly epoch: string
  /** The number of hints announced so far. */
  readonly sequence: number
  /** The last hints, newest last. A reader that has missed more than these must list. */
  readonly hints: readonly string[]
  /** How often a pause or a schedule changed. */
  readonly documents: number
}

/** What one process adds. */
export interface Announcement {
  readonly hints: readonly string[]
  /** The number of hints that are counted but no longer named. */
  readonly unnamed: number
  readonly documents: number
}

export interface WakeChanges {
  /** null: some are not named. */
  readonly hints: readonly string[] | null
  readonly documentsChanged: boolean
}

const MOST_HINTS = 200
/** The total length of the names. Every reader loads them. */
const MOST_TEXT = 32_768

/** null: not what this release writes. */
export const parseWake = (text: string): WakeBody | null => {
  try {
    const body = JSON.parse(text) as WakeBody
    const isWhole = Number.isSafeInteger(body.sequence) && Number.isSafeInteger(body.documents)
    return isWhole && typeof body.epoch === 'string' && Array.isArray(body.hints) ? body : null
  } catch {
    return null
  }
}

/** The nonce makes every text different, and with it the etag. */
export const encodeWake = (body: WakeBody): string => JSON.stringify({ ...body, nonce: newNonce() })

export const addToWake = (before: WakeBody | null, added: Announcement): WakeBody => {
  const base = before ?? { epoch: newNonce(), sequence: 0, hints: [], documents: 0 }
  // Names before a gap are useless: a reader that needs them must list anyway.
  const named = added.unnamed > 0 ? added.hints : [...base.hints, ...added.hints]
  return {
    epoch: base.epoch,
    sequence: base.sequence + added.unnamed + added.hints.length,
    hints: lastOf(named),
    documents: base.documents + added.documents,
  }
}

const lastOf = (hints: readonly string[]): readonly string[] => {
  let [start, length] = [hints.length, 0]
  while (start > 0 && hints.length - start < MOST_HINTS) {
    length += hints[start - 1]!.length
    if (length > MOST_TEXT) break
    start--
  }
  return hints.slice(start)
}

export const changesBetween = (before: WakeBody | null, after: WakeBody): WakeChanges => {
  if (before === null || before.epoch !== after.epoch) return { hints: null, documentsChanged: true }
  const fresh = after.sequence - before.sequence
  return {
    hints: fresh < 0 || fresh > after.hints.length ? null : fresh === 0 ? [] : after.hints.slice(-fresh),
    documentsChanged: after.documents !== before.documents,
  }
}
