/** A separate thread and connection that read the whole file, so that the store's thread can keep renewing leases. */
import { existsSync, statfsSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { MOST_AHEAD } from '../../core/host/host-clock.ts'
import type { Fact } from '../../core/observe/diagnosis.ts'
import { RECOVER } from './errors.ts'
import { readAhead, readHighWater } from './file/clock-mark.ts'
import { loadSqlite } from './file/driver.ts'
import { isAtLeast, LEAST_VERSION, versionOf } from './file/version.ts'
import { SCHEMA_VERSION, schemaVersion } from './schema.ts'
import { LEASES_AHEAD, TASKS_AHEAD } from './write/repair-clock.ts'

const MOST_FAULTS = 5
/** The size limit that connection.ts sets. */
const USUAL_LOG = 67_108_864
/** A file may be so damaged that the check itself fails. */
const faultsOf = (db: DatabaseSync): string[] => {
  try {
    const verdicts = db.prepare(`pragma quick_check(${MOST_FAULTS})`).all()
    return verdicts.map((row) => String(Object.values(row)[0])).filter((verdict) => verdict !== 'ok')
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

/** Every process stores the time in the file. If this machine's clock is behind it, the clock was set back. */
const clockFact = (db: DatabaseSync, now: number): Fact => {
  const mark = readAhead(db, now)
  if (mark === null) return { check: 'clock', ahead: Math.min(0, now - readHighWater(db).at), uncertainty: 0 }
  const count = (where: string): number =>
    Number(db.prepare(`select count(*) as n from holdfast_task where ${where}`).get({ limit: now + MOST_AHEAD })!['n'])
  return { check: 'clock-mark', ...mark, here: now, leases: count(LEASES_AHEAD), tasks: count(TASKS_AHEAD) }
}

const examine = (path: string): Fact[] => {
  const db = new (loadSqlite().DatabaseSync)(path, { readOnly: true, timeout: 5_000 })
  try {
    const pragma = (name: string): unknown => Object.values(db.prepare(`pragma ${name}`).get() ?? {})[0]
    const version = versionOf(db)
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
      { check: 'integrity', by: 'quick_check', faults: faultsOf(db), how: RECOVER },
      // Always fine: connect has already checked that the file can be read and written.
      { check: 'permissions', who: `user ${userInfo().username}`, missing: [], how: '' },
      { check: 'privacy', path, mode: statSync(path).mode & 0o777 },
      { check: 'disk-space', free: disk.bavail * disk.bsize, used: pages * page },
      {
        check: 'log',
        size: existsSync(log) ? statSync(log).size : 0,
        usual: USUAL_LOG,
        how: 'End the reading process (a backup, a shell with an open transaction), or restart the applications that have the file open.',
      },
      {
        check: 'bloat',
        what: 'the file',
        dead: free * page,
        live: (pages - free) * page,
        unit: 'bytes',
        how: 'It is used again before the file grows; to give it back, stop the workers and run `sqlite3 FILE vacuum`.',
      },
      clockFact(db, Date.now()),
    ]
  } finally {
    db.close()
  }
}

parentPort!.postMessage(examine((workerData as { readonly path: string }).path))
