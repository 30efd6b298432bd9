/** Whether this server keeps what everything rests on: of many who write under one condition exactly one succeeds. */
import { randomUUID } from 'node:crypto'
import { HoldfastError, isContactLost } from '../../core/errors.ts'
import type { Mark } from '../kv/key-value.ts'
import { SteadyKeyValue } from '../kv/steady.ts'
import type { S3KeyValue } from './key-value.ts'

const RUNNERS = 16
const TRIES = 3

/** Rejects with INVALID_OPTION when the server cannot be trusted with a queue. */
export const proveConditions = async (kv: S3KeyValue): Promise<void> => {
  const key = `proof/${randomUUID()}`
  const steady = new SteadyKeyValue(kv)
  try {
    const created = await race(kv, key, (value) => kv.create(key, value), 'If-None-Match')
    const swapped = await swap(kv, key, created)
    if ((await steady.update(key, 'stale', created)) !== null)
      throw untrusted(kv, 'If-Match with an etag that is out of date')
    if ((await steady.create(key, 'again')) !== null) throw untrusted(kv, 'If-None-Match on a key that is there')
    if ((await steady.update(`${key}-missing`, 'x', swapped)) !== null)
      throw untrusted(kv, 'If-Match on a key that is not there')
  } finally {
    await steady.delete([key, `${key}-missing`]).catch(() => {})
  }
}

/** Older gateways compare etags only without their quotes. */
const swap = async (kv: S3KeyValue, key: string, created: Mark): Promise<Mark> => {
  try {
    return await race(kv, key, (value) => kv.update(key, value, created), 'If-Match')
  } catch (error) {
    if (!(error instanceof NoWinner) || kv.etagsAreBare) throw error
    kv.etagsAreBare = true
    return race(kv, key, (value) => kv.update(key, value, created), 'If-Match')
  }
}

class NoWinner extends HoldfastError {}

/** Everybody writes something else; what stands there in the end must be the winner's. */
const race = async (
  kv: S3KeyValue,
  key: string,
  write: (value: string) => Promise<Mark | null>,
  condition: string,
): Promise<Mark> => {
  for (let tries = 1; ; tries++) {
    const values: string[] = Array.from({ length: RUNNERS }, () => randomUUID())
    const marks = await Promise.all(
      values.map((value) =>
        // Not known whether it was written: the read below tells.
        write(value).catch((error: unknown) => (isContactLost(error) ? undefined : Promise.reject(error))),
      ),
    )
    const winners = marks.filter((mark) => typeof mark === 'string').length
    if (winners > 1) throw untrusted(kv, `${winners} of ${RUNNERS} writers at once with ${condition}`)
    const found = await new SteadyKeyValue(kv).get(key)
    const winner = values.indexOf(found?.value ?? '')
    if (found !== null && winner !== -1) {
      if (winners === 1 && typeof marks[winner] !== 'string')
        throw untrusted(kv, `a write with ${condition} that it had refused`)
      return found.mark
    }
    if (tries === TRIES)
      throw new NoWinner('INVALID_OPTION', `${kv.address}: no write with ${condition} succeeds on this server`, {
        field: 'url',
      })
  }
}

const untrusted = (kv: S3KeyValue, what: string): HoldfastError =>
  new HoldfastError(
    'INVALID_OPTION',
    `${kv.address}: this server accepts ${what}, so two workers could take the same task. Holdfast needs a server that honours If-None-Match and If-Match on PUT`,
    { field: 'url' },
  )
