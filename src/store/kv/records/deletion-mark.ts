/**
 * Deletion marks. No server makes a conditional delete atomic with a write, so a key is first marked by compare-and-set. Only the
 * process that set the mark deletes the key, and only shortly afterwards.
 */
import { HoldfastError } from '../../../core/errors.ts'
import type { Instant } from '../../../core/task.ts'
import { sleep } from '../access/retry.ts'

/** The process that set the mark deletes the key within this time, or sets the mark again. */
export const DELETE_WITHIN = 5_000
/** After this time no delete can still be under way, so the key may be written over. */
export const DELETION_OVER = 60_000
const TRIES = 40
const WAIT = 50

/** Reads a key, and waits while another process is deleting it. */
export const readPastDeletion = async <T extends { readonly deletingAt: Instant | null }>(
  read: () => Promise<T | null>,
  now: () => Promise<Instant>,
): Promise<T | null> => {
  for (let tries = 0; tries < TRIES; tries++) {
    const found = await read()
    if (found === null || found.deletingAt === null || (await now()) - found.deletingAt > DELETION_OVER) return found
    await sleep(WAIT)
  }
  throw new HoldfastError('STORE_BUSY', 'another process is deleting what was stored here: repeat the call')
}
