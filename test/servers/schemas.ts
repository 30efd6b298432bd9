/** Empty stores on one PostgreSQL, quickly: a schema is emptied and used again when nobody has it open. */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { afterAll } from 'vitest'
import { openPostgres, type PostgresOptions } from '../../src/store/postgres/store.ts'
import type { Store } from '../../src/store/store.ts'

/** Runs statements on a connection of their own. */
export const runSql = async (url: string, ...statements: string[]): Promise<Record<string, unknown>[]> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    let rows: Record<string, unknown>[] = []
    for (const statement of statements) ({ rows } = await client.query(statement))
    return rows
  } finally {
    await client.end()
  }
}

/** A schema name that nobody else has. */
export const freshSchema = (): string => `holdfast_test_${randomBytes(6).toString('hex')}`

export const emptySchemas = (url: string, options: PostgresOptions = {}): (() => Promise<Store>) => {
  const free: string[] = []
  const made: string[] = []
  afterAll(async () => {
    // In small steps: one transaction that drops them all would need more locks than the server has.
    for (const schema of made) await runSql(url, `drop schema ${schema} cascade`)
  })
  return async () => {
    let schema = free.pop()
    if (schema === undefined) {
      schema = freshSchema()
      made.push(schema)
    } else await runSql(url, `truncate ${schema}.task, ${schema}.journal, ${schema}.key, ${schema}.document`)
    const store = await openPostgres(url, { max: 3, ...options, schema, create: true })
    return freedOnClose(store, () => free.push(schema))
  }
}

const freedOnClose = (store: Store, freed: () => void): Store => {
  let isFreed = false
  const close = async (): Promise<void> => {
    await store.close()
    if (!isFreed) freed()
    isFreed = true
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return close
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
