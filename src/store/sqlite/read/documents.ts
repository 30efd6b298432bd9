/** Small named texts with a version. */
import type { DatabaseSync } from 'node:sqlite'
import type { Document } from '../../store.ts'
import { prepared } from '../file/connection.ts'

const asDocument = ([name, value, version]: [string, string, number]): Document => ({ name, value, version })

export const getDocument = (db: DatabaseSync, name: string): Document | null => {
  const row = prepared(db, 'select name, value, version from holdfast_document where name = ?').get(name)
  return row === undefined ? null : asDocument(row as unknown as [string, string, number])
}

export const listDocuments = (db: DatabaseSync, prefix: string): Document[] => {
  const rows = prepared(
    db,
    'select name, value, version from holdfast_document where substr(name, 1, length(?1)) = ?1 order by name',
  ).all(prefix)
  return (rows as unknown as [string, string, number][]).map(asDocument)
}

export const putDocument = (db: DatabaseSync, name: string, value: string, version: number): number | null => {
  const { changes } =
    version === 0
      ? prepared(
          db,
          'insert into holdfast_document (name, value, version) values (?, ?, 1) on conflict (name) do nothing',
        ).run(name, value)
      : prepared(
          db,
          'update holdfast_document set value = ?, version = version + 1 where name = ? and version = ?',
        ).run(value, name, version)
  return changes === 0 ? null : version + 1
}

export const deleteDocument = (db: DatabaseSync, name: string, version: number): boolean => {
  prepared(db, 'delete from holdfast_document where name = ? and version = ?').run(name, version)
  return getDocument(db, name) === null
}
