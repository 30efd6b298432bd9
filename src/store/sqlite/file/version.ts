/** The SQLite version of this Node, and the lowest that is safe for several writers of one file. */
import type { DatabaseSync } from 'node:sqlite'
import { HoldfastError } from '../../../core/errors.ts'

/** Earlier versions can corrupt a file with several writers. */
export const LEAST_VERSION = '3.51.3'

export const versionOf = (db: DatabaseSync): string =>
  String(Object.values(db.prepare('select sqlite_version()').get()!)[0])

export const isAtLeast = (version: string, least: string): boolean => {
  const [have, need] = [version, least].map((text) => text.split('.').map(Number)) as [number[], number[]]
  for (const [i, part] of need.entries()) if (have[i] !== part) return have[i]! > part
  return true
}

/** Checked on every open, because every process that opens the file writes to it. */
export const mustBeSafe = (version: string): void => {
  if (isAtLeast(version, LEAST_VERSION)) return
  throw new HoldfastError(
    'STORE_UNAVAILABLE',
    `this Node (${process.versions.node}) has SQLite ${version}, which can corrupt a file that several processes write: Holdfast needs ${LEAST_VERSION}, which Node 22.22.3 or later of 22, and 24.15 or later have`,
    { version, least: LEAST_VERSION },
  )
}
