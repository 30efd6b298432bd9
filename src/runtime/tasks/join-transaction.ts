/** Joins the caller's transaction, where the store has any. */
import { HoldfastError } from '../../core/errors.ts'
import type { JoinedTransaction, Store } from '../../store/store.ts'
import type { Session } from '../session.ts'

export const mustHaveTransactions = ({ capabilities, address }: Store): void => {
  if (!capabilities.has('transactions'))
    throw new HoldfastError(
      'INVALID_OPTION',
      `tx is not possible on ${address}: this store has no transactions to join`,
      { field: 'tx' },
    )
}

export const joinTransaction = ({ store }: Session, tx: unknown): JoinedTransaction => {
  mustHaveTransactions(store)
  return store.join!(tx)
}
