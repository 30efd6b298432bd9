/** Children and checkers take an address: a path for SQLite, a URL for a server. */
import { openPostgres } from '../../src/store/postgres/store.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'

/** `create` false: it must be there. */
export const openAt = (address: string, create = true): Promise<Store> =>
  address.startsWith('postgres:')
    ? openPostgres(address, { create, max: 4, queryTimeout: '5s' })
    : openSqlite(address, { create })
