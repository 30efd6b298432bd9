/** Whether this release may use what an earlier or a later one has stored. */
import { HoldfastError } from '../errors.ts'

/** An earlier version is brought up to date by the store. A later one may hold what this release would lose. */
export const refuseNewer = (store: string, found: number, known: number): void => {
  if (found <= known) return
  throw new HoldfastError('SCHEMA_NEWER', `${store} has schema ${found}; this release knows up to ${known}`, {
    found,
    known,
  })
}
