/** Names every right that is missing where a store cannot be opened: a store that is not open cannot be examined. */
import { HoldfastError, isHoldfastError } from '../../core/errors.ts'

/** The error of opening, with what `find` finds if a right was missing. `lacking`: who lacks it, as in 'this user may not'. */
export const withMissingRights = async (
  error: unknown,
  lacking: string,
  find: () => Promise<readonly string[]>,
): Promise<unknown> => {
  if (!isHoldfastError(error, 'STORE_READ_ONLY')) return error
  const missing = await find().catch(() => [])
  if (missing.length === 0) return error
  const text = `${error.message}; of what a worker needs, ${lacking} ${missing.join(', ')}`
  return new HoldfastError(error.code, text, { ...error.details, missing }, error)
}
