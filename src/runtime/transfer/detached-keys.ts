/** A transfer or an import must not drop keys silently: their tasks could be submitted twice. */
import { HoldfastError } from '../../core/errors.ts'
import type { DetachedKeys, Store } from '../../store/store.ts'

export const mustKeepKeys = ({ detachedKeys, address }: Store): DetachedKeys => {
  if (detachedKeys) return detachedKeys
  throw new HoldfastError(
    'INVALID_OPTION',
    `${address} keeps no idempotency keys whose task was removed: let them expire first, or use another store`,
    { field: 'url' },
  )
}
