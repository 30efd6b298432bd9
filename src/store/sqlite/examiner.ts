/** A thread of its own that reads a whole file on a connection of its own, so that the store's thread goes on renewing leases. */
import { existsSync, statfsSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { Fact } from '../../core/diagnosis.ts'
import { readMeta, SCHEMA_VERSION, schemaVersion } from './schema.ts'

const MOST_FAULTS = 5
/** As set on every connection: see connection.ts. */
const USUAL_LOG = 67_108_864
/** Earlier ones can corrupt a file with several writers. */
const LEAST_VERSION = '3.51.3'

const isAtLeast = (version: string, least: string): boolean => {
  const [have, need] = [version, least].map((text) => text.split('.').map(Number)) as [number[], number[]]
  for (const [i, part] of need.entries()) if (have[i] !== part) return have[i]! > part
  return true
}

/** A file may be so damaged that the check itself ends in an error. */
const faultsOf = (db: DatabaseSync): string[] => {
  try {
    const verdicts = db.prepare(`pragma quick_check(${MOST_FAULTS})`).all()
    return verdicts.map((row) => String(Object.values(row)[0])).filter((verdict) => verdict !== 'ok')
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

const examine = (path: string): Fact[] => {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  try {
    const pragma = (name: string): unknown => Object.values(db.prepare(`pragma ${name}`).get() ?? {})[0]
    const version = String(Object.values(db.prepare('select sqlite_version()').get()!)[0])
    const page = Number(pragma('page_size'))
    const [free, pages] = [Number(pragma('freelist_count')), Number(pragma('page_count'))]
    const disk = statfsSync(path)
    const log = `${path}-wal`
    return [
      {
        check: 'version',
        product: 'SQLite',
        version,
        least: LEAST_VERSION,
        isEnough: isAtLeast(version, LEAST_VERSION),
      },
      { check: 'schema', found: schemaVersion(db), known: SCHEMA_VERSION },
      {
        check: 'durability',
        setting: 'journal_mode',
        value: String(pragma('journal_mode')),
        wanted: 'wal',
        how: 'Let no other program change it: the next connect sets it to wal.',
      },
      { check: 'integrity', by: 'quick_check', faults: faultsOf(db) },
      // The store is open, so it may read and write: connect has tried.
      { check: 'permissions', who: `user ${userInfo().username}`, missing: [], how: '' },
      { check: 'privacy', path, mode: statSync(path).mode & 0o777 },
      { check: 'disk-space', free: disk.bavail * disk.bsize, used: pages * page },
      { check: 'log', size: existsSync(log) ? statSync(log).size : 0, usual: USUAL_LOG },
      {
        check: 'bloat',
        what: 'the file',
        dead: free * page,
        live: (pages - free) * page,
        unit: 'bytes',
        how: 'It is used again before the file grows; to give it back, stop the workers and run `sqlite3 FILE vacuum`.',
      },
      // Every process notes the time on the file: behind it, this machine's clock was set back.
      { check: 'clock', ahead: Math.min(0, Date.now() - Number(readMeta(db, 'high_water') ?? 0)), uncertainty: 0 },
    ]
  } finally {
    db.close()
  }
}

parentPort!.postMessage(examine((workerData as { readonly path: string }).path))
