/** Which statuses a query asks for. Both SQL stores have an index of the rare ones. */
import type { Query } from '../store.ts'

/** All but pending, running and completed. */
export const RARE = ['failed', 'cancelled', 'expired', 'archived'] as const

export const isOnly = ({ views = [] }: Query, ...statuses: readonly string[]): boolean =>
  views.length > 0 && views.every(({ status }) => statuses.includes(status))

export const isRare = (query: Query): boolean => isOnly(query, ...RARE)
