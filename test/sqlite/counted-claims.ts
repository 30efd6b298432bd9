/** Claims on a store in memory that counts statements and rows. */
import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import { claimRows, idleLook } from '../../src/store/sqlite/claim/claim.ts'
import { Tally } from '../../src/store/sqlite/read/counts.ts'
import { migrate } from '../../src/store/sqlite/schema.ts'
import type { ClaimRequest } from '../../src/store/store.ts'

export const NOW = 1_800_000_000_000

/** A store in memory, and how many statements were run on it, and rows that they gave. */
export const begin = () => {
  const db = new DatabaseSync(':memory:')
  onTestFinished(() => db.close())
  migrate(db, 'test')
  const put = db.prepare(
    `insert into holdfast_task (id, queue, type, priority, available_at, expires_at, created_at, updated_at, input, history, task_group) values (?, 'q', ?, ?, ?, ?, 0, 0, '1', '{}', ?)`,
  )
  let n = 0
  const insert = (
    type: string,
    priority: number,
    at: number,
    expiresAt: number | null = null,
    group: string | null = null,
  ): void => {
    put.run(String(n++).padStart(8, '0'), type, priority, at, expiresAt, group)
  }
  const cost = { statements: 0, rows: 0 }
  const texts = new Set<string>()
  const counted = new Proxy(db, {
    get(target, name) {
      if (name !== 'prepare') return bound(target, name)
      return (sql: string) => {
        texts.add(sql)
        return new Proxy(target.prepare(sql), {
          get(statement, method) {
            const call = bound(statement, method)
            if (method === 'iterate')
              return function* (...values: unknown[]) {
                cost.statements++
                for (const row of call(...values) as Iterable<unknown>) {
                  cost.rows++
                  yield row
                }
              }
            if (method !== 'get' && method !== 'all' && method !== 'run') return call
            return (...values: unknown[]) => {
              cost.statements++
              const rows: unknown = call(...values)
              cost.rows += method === 'all' ? (rows as unknown[]).length : 1
              return rows
            }
          },
        })
      }
    },
  })
  const want = (more: Partial<ClaimRequest> = {}): ClaimRequest => ({
    queue: 'q',
    types: ['work'],
    limit: 10,
    workerId: 'w',
    op: 'op',
    leaseTtl: 5_000,
    dueLimit: 0,
    now: NOW,
    ...more,
  })
  const measured = <T>(look: () => T): T & { readonly cost: typeof cost } => {
    Object.assign(cost, { statements: 0, rows: 0 })
    const result = look()
    return { ...result, cost: { ...cost } }
  }
  return {
    db,
    /** Every statement that was prepared. */
    texts,
    insert,
    idle: (more?: Partial<ClaimRequest>) => measured(() => idleLook(counted, want(more), NOW)!),
    claim: (more?: Partial<ClaimRequest>) => measured(() => claimRows(counted, want(more), NOW, new Tally(), false)),
  }
}

const bound = (target: object, name: string | symbol): ((...values: unknown[]) => unknown) => {
  const value: unknown = Reflect.get(target, name, target)
  return typeof value === 'function' ? value.bind(target) : (value as never)
}
