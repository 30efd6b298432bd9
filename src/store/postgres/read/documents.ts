/** Small named texts with a version. */
import type { Document, Documents } from '../../store.ts'
import type { Connections, PgRow } from '../connection.ts'

const asDocument = (row: PgRow): Document => ({
  name: row[0] as string,
  value: row[1] as string,
  version: row[2] as number,
})

export const postgresDocuments = (connections: Connections, schema: string): Documents => ({
  async get(name) {
    const [row] = await connections.query(`select name, value, version from ${schema}.document where name = $1`, [name])
    return row === undefined ? null : asDocument(row)
  },
  async put(name, value, version) {
    const [row] =
      version === 0
        ? await connections.query(
            `insert into ${schema}.document (name, value, version) values ($1, $2, 1) on conflict (name) do nothing returning version`,
            [name, value],
          )
        : await connections.query(
            `update ${schema}.document set value = $2, version = version + 1 where name = $1 and version = $3 returning version`,
            [name, value, version],
          )
    return row === undefined ? null : (row[0] as number)
  },
  async list(prefix) {
    const rows = await connections.query(
      `select name, value, version from ${schema}.document where starts_with(name, $1) order by name`,
      [prefix],
    )
    return rows.map(asDocument)
  },
  async delete(name, version) {
    await connections.query(`delete from ${schema}.document where name = $1 and version = $2`, [name, version])
    const [row] = await connections.query(`select 1 from ${schema}.document where name = $1`, [name])
    return row === undefined
  },
})
