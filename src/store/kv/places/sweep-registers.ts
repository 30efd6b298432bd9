/** Deletes registers of groups that have been empty for a while. There may be as many groups as a user has customers. */
import type { Instant } from '../../../core/task.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { DELETE_WITHIN, DELETION_OVER } from '../records/deletion-mark.ts'
import { isGroupPlaces, PLACES } from '../records/names.ts'
import { decodePlaces, encodePlaces } from './place-body.ts'

const EMPTY_FOR = 600_000
const PAGE = 1_000
const AT_ONCE = 50

/** One page, from `after` on. Returns where the next one begins; undefined: at the start. */
export const sweepRegisters = async (
  kv: RetryingKeyValue,
  now: Instant,
  after: string | undefined,
): Promise<string | undefined> => {
  const keys = await kv.list(PLACES, after === undefined ? { limit: PAGE } : { limit: PAGE, after })
  const ofGroups = keys.filter(isGroupPlaces)
  for (let at = 0; at < ofGroups.length; at += AT_ONCE)
    await Promise.all(ofGroups.slice(at, at + AT_ONCE).map((key) => sweepOne(kv, key, now)))
  return keys.length < PAGE ? undefined : keys.at(-1)
}

const sweepOne = async (kv: RetryingKeyValue, key: string, now: Instant): Promise<void> => {
  const entry = await kv.get(key)
  if (entry === null) return
  const body = decodePlaces(key, entry.value)
  if (body.emptyAt === null || now - body.emptyAt < EMPTY_FOR) return
  if (body.deletingAt !== null && now - body.deletingAt <= DELETION_OVER) return
  const begun = performance.now()
  if ((await kv.update(key, encodePlaces({ ...body, deletingAt: now }), entry.mark)) === null) return
  if (performance.now() - begun < DELETE_WITHIN) await kv.delete([key])
}
