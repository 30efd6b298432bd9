/**
 * submit(…, { tx }) needs only `query(text, values)`, which a `pg` client has. Other libraries need a few lines:
 * each adapter takes the transaction that the library passes to your function, and returns what Holdfast needs.
 *
 *   await db.transaction(async (tx) => {                                    // drizzle-orm/node-postgres
 *     await tx.insert(orders).values({ total: 42 })
 *     await holdfast.submit('send_receipt', { total: 42 }, { tx: fromDrizzle(tx, sql) })
 *   })
 *   await db.transaction().execute(async (trx) => {                         // kysely
 *     await trx.insertInto('orders').values({ total: 42 }).execute()
 *     await holdfast.submit('send_receipt', { total: 42 }, { tx: fromKysely(trx, CompiledQuery) })
 *   })
 *   await prisma.$transaction(async (tx) => {                               // prisma
 *     await tx.orders.create({ data: { total: 42 } })
 *     await holdfast.submit('send_receipt', { total: 42 }, { tx: fromPrisma(tx) })
 *   })
 */

export interface QueryFunction {
  query(text: string, values: unknown[]): Promise<{ rows: readonly object[] }>
}

/** `trx` and `CompiledQuery` of kysely. */
export const fromKysely = <Query>(
  trx: { executeQuery(query: Query): Promise<{ rows: unknown[] }> },
  CompiledQuery: { raw(text: string, values: unknown[]): Query },
): QueryFunction => ({
  query: async (text, values) => ({ rows: (await trx.executeQuery(CompiledQuery.raw(text, values))).rows as object[] }),
})

/** The client that `prisma.$transaction(async (tx) => …)` passes to you. */
export const fromPrisma = (tx: {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>
}): QueryFunction => ({
  query: async (text, values) => ({ rows: (await tx.$queryRawUnsafe(text, ...values)) as object[] }),
})

/** `tx` and `sql` of drizzle: its statements consist of pieces, so the text is split at $1, $2, … */
export const fromDrizzle = <Piece>(
  tx: { execute(statement: Piece): Promise<{ rows: unknown[] }> },
  sql: { raw(text: string): Piece; param(value: unknown): unknown; join(pieces: never[], separator: Piece): Piece },
): QueryFunction => ({
  async query(text, values) {
    const pieces = text
      .split(/\$(\d+)/)
      .map((part, i) => (i % 2 === 0 ? sql.raw(part) : sql.param(values[Number(part) - 1])))
    const { rows } = await tx.execute(sql.join(pieces as never[], sql.raw('')))
    return { rows: rows as object[] }
  },
})
