/** Children and checkers take an address: a path for SQLite, a URL for a server. */
import { openNats } from '../../src/store/nats/store.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { openS3 } from '../../src/store/s3/store.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'

/** `create` false: it must be there. */
export const openAt = (address: string, create = true): Promise<Store> => {
  switch (/^(postgres|s3|nats):/.exec(address)?.[1]) {
    case 'postgres':
      return openPostgres(address, { create, max: 4, queryTimeout: '5s' })
    case 's3':
      return openS3(address, { create, requestTimeout: '5s' })
    case 'nats':
      return openNats(address, { create })
    default:
      return openSqlite(address, { create })
  }
}
