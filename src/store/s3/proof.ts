/** Proves what everything rests on: of several writers with the same condition exactly one wins, and lists are in order. */
import { randomUUID } from 'node:crypto'
import { HoldfastError, isContactLost } from '../../core/errors.ts'
import type { KeyValue, Mark } from '../kv/access/key-value.ts'
import { sleep } from '../kv/access/retry.ts'
import { RetryingKeyValue } from '../kv/access/retrying-key-value.ts'
import { PROOF } from '../kv/records/names.ts'

export interface ProvedKeyValue extends KeyValue {
  /** Found by the proof: some older servers compare an etag without its quotes. */
  etagsAreBare: boolean
}

const RUNNERS = 16
const TRIES = 3
/** After throttled writes there are more tries, with a delay: some servers allow one write per second and key. */
const PACED_TRIES = 8
const PACE = 1_100

/** Rejects with a Disproof if the server cannot be trusted, and with STORE_UNAVAILABLE if that remains unclear. */
export const prove = async (kv: ProvedKeyValue): Promise<void> => {
  const folder = `${PROOF}${randomUUID()}/`
  await proveConditions(kv, `${folder}race`)
  await proveOrder(kv, folder)
}

const proveConditions = async (kv: ProvedKeyValue, key: string): Promise<void> => {
  const retrying = new RetryingKeyValue(kv)
  const missing = `${key}-missing`
  try {
    const created = await race(kv, key, (value) => kv.create(key, value), 'If-None-Match')
    const swapped = await swap(kv, key, created)
    if ((await retrying.update(key, 'stale', created)) !== null)
      throw untrusted(kv, 'If-Match with an etag that is out of date')
    if ((await retrying.create(key, 'again')) !== null) throw untrusted(kv, 'If-None-Match on a key that is there')
    if ((await retrying.update(missing, 'x', swapped)) !== null)
      throw untrusted(kv, 'If-Match on a key that is not there')
  } finally {
    await cleanUp(retrying, [key, missing])
  }
}

/** Older gateways compare etags only without their quotes. */
const swap = async (kv: ProvedKeyValue, key: string, created: Mark): Promise<Mark> => {
  try {
    return await race(kv, key, (value) => kv.update(key, value, created), 'If-Match')
  } catch (error) {
    if (!(error instanceof NoWinner) || kv.etagsAreBare) throw error
    kv.etagsAreBare = true
    try {
      return await race(kv, key, (value) => kv.update(key, value, created), 'If-Match')
    } catch (again) {
      kv.etagsAreBare = false
      throw again
    }
  }
}

/** The server does not honour what is needed. */
export class Disproof extends HoldfastError {
  constructor(message: string) {
    super('INVALID_OPTION', message, { field: 'url' })
  }
}

class NoWinner extends Disproof {}

/** Each writer writes a different value. The stored value must be the winner's. */
const race = async (
  kv: ProvedKeyValue,
  key: string,
  write: (value: string) => Promise<Mark | null>,
  condition: string,
): Promise<Mark> => {
  for (let tries = 1; ; tries++) {
    const values: string[] = Array.from({ length: RUNNERS }, () => randomUUID())
    const marks = await Promise.all(
      values.map((value) =>
        // It is unclear whether this was written. The read below shows it.
        write(value).catch((error: unknown) => (isContactLost(error) ? undefined : Promise.reject(error))),
      ),
    )
    const winners = marks.filter((mark) => typeof mark === 'string').length
    if (winners > 1) throw untrusted(kv, `${winners} of ${RUNNERS} writers at once with ${condition}`)
    const found = await new RetryingKeyValue(kv).get(key)
    const winner = values.indexOf(found?.value ?? '')
    if (found !== null && winner !== -1) {
      if (winners === 1 && typeof marks[winner] !== 'string')
        throw untrusted(kv, `a write with ${condition} that it had refused`)
      return found.mark
    }
    const isOpen = marks.includes(undefined)
    if (tries >= (isOpen ? PACED_TRIES : TRIES)) throw noWinner(kv, condition, isOpen)
    if (isOpen) await sleep(PACE)
  }
}

const noWinner = (kv: ProvedKeyValue, condition: string, isOpen: boolean): HoldfastError =>
  isOpen
    ? new HoldfastError(
        'STORE_UNAVAILABLE',
        `${kv.address}: the server rejected every write with ${condition}, so it is unknown whether it honours conditions`,
      )
    : new NoWinner(`${kv.address}: no write with ${condition} succeeds on this server`)

/** In byte order, which is neither alphabetical nor the order in which they are written. */
const ORDERED = ['-', '0', '=', 'B', '_', 'a', 'a.b', 'a0', 'b', '~']
/** Coprime to the number of keys, so that each is written once and neighbours are far apart. */
const STRIDE = 7

/** A survey reads a queue from its beginning and continues after a key. A list out of order would hide tasks. */
const proveOrder = async (kv: ProvedKeyValue, folder: string): Promise<void> => {
  const retrying = new RetryingKeyValue(kv)
  const prefix = `${folder}order/`
  const keys = ORDERED.map((name) => prefix + name)
  try {
    await Promise.all(keys.map((_, n) => retrying.create(keys[(n * STRIDE) % keys.length]!, randomUUID())))
    const listed = await retrying.list(prefix, { limit: 1_000 })
    if (!isEqual(listed.toSorted(byBytes), keys)) throw disorderly(kv, 'leaves out keys that were just written')
    if (!isEqual(listed, keys)) throw disorderly(kv, 'is not in the order of the keys')
    const rest = await retrying.list(prefix, { after: keys[4]!, limit: 3 })
    // The server may return more keys than requested.
    if (!isEqual(rest.slice(0, 3), keys.slice(5, 8)))
      throw disorderly(kv, 'does not continue after the key that start-after names')
  } finally {
    await cleanUp(retrying, keys)
  }
}

const byBytes = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

const isEqual = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === others.length && some.every((key, n) => key === others[n])

/** A role that may write but not delete leaves some small objects. */
const cleanUp = (retrying: RetryingKeyValue, keys: readonly string[]): Promise<void> =>
  retrying.delete(keys).catch(() => {})

const untrusted = (kv: ProvedKeyValue, what: string): HoldfastError =>
  new Disproof(
    `${kv.address}: this server accepts ${what}, so two workers could take the same task. Holdfast needs a server that honours If-None-Match and If-Match on PUT`,
  )

const disorderly = (kv: ProvedKeyValue, what: string): HoldfastError =>
  new Disproof(
    `${kv.address}: a list of this server ${what}, so tasks would not be found. Holdfast needs lists in order, which S3 directory buckets (Express One Zone) do not have: use a general purpose bucket`,
  )
