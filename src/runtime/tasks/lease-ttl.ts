/** Checks the length of a lease, for workers and for claims by hand. */

import { HoldfastError } from '../../core/errors.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import type { Session } from '../session.ts'

const SHORTEST = 100

/** Defaults to the store's. A lease must be longer than twice the uncertainty of the store's clock. */
export const leaseTtlOf = ({ store, time }: Session, given: Duration | undefined): number => {
  const least = Math.max(SHORTEST, Math.ceil(2 * time.uncertainty))
  if (given === undefined) return Math.max(store.leaseTtl, least)
  const length = parseDuration(given, 'leaseTtl')
  if (length >= least) return length
  const why = least > SHORTEST ? ", twice what the store's clock is uncertain by" : ''
  throw new HoldfastError('INVALID_OPTION', `leaseTtl is ${length} ms; the minimum is ${least} ms${why}`, {
    field: 'leaseTtl',
  })
}
