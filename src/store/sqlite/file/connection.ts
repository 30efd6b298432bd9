/** Opens the file with mode 0600, WAL, synchronous=FULL and a short busy timeout. Prepares statements once per connection. */
import { accessSync, closeSync, constants, existsSync, openSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { HoldfastError } from '../../../core/errors.ts'
import { asHoldfastError } from '../errors.ts'
import { migrate, readMeta } from '../schema.ts'
import { loadSqlite } from './driver.ts'
import { mustBeSafe, versionOf } from './version.ts'

export interface Opened {
  readonly db: DatabaseSync
  readonly identity: string
  readonly created: boolean
}

/** Short, because SQLite's own wait can block for seconds and starve other processes. Jittered retries happen above it. */
const BUSY_TIMEOUT = 5

export const openFile = (path: string, options: { create: boolean; identity: string }): Opened => {
  const address = `sqlite:${path}`
  let db: DatabaseSync | undefined
  try {
    makeFile(path, options.create)
    mustBeWritable(path)
    refuseNetworkFiles(path)
    db = new (loadSqlite().DatabaseSync)(path, { timeout: BUSY_TIMEOUT })
    const created = retryWhileBusy(() => {
      // The first statement of a connection always reads the file, and may find it locked.
      mustBeSafe(versionOf(db!))
      setPragmas(db!)
      return migrate(db!, options.identity)
    })
    // Moves the identity into the file itself. If it were only in the log, a lost log would make the file look new.
    if (created) db.exec('pragma wal_checkpoint(truncate)')
    const identity = readMeta(db, 'identity')
    if (identity === null) throw new HoldfastError('STORE_CORRUPT', `${address}: the store has no identity`)
    return { db, identity, created }
  } catch (error) {
    db?.close()
    throw asHoldfastError(error, address)
  }
}

/** Created before SQLite opens it, so that other users can never read payloads. -wal and -shm inherit its mode. */
const makeFile = (path: string, create: boolean): void => {
  if (existsSync(path)) return
  if (!create) throw new HoldfastError('STORE_NOT_FOUND', `sqlite:${path}: there is no such file`)
  mustHaveFolder(path)
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    // Another process has just created it: use that file.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** The folder is not created: an address with a typo would create a second, empty store. */
const mustHaveFolder = (path: string): void => {
  const folder = dirname(path)
  if (existsSync(folder)) return
  throw new HoldfastError(
    'STORE_NOT_FOUND',
    `sqlite:${path}: there is no folder ${folder}. Correct the address, or make the folder first`,
    { folder },
  )
}

/** Checked first, because SQLite reports a missing permission only as "cannot open". The folder must be writable for -wal and -shm. */
const mustBeWritable = (path: string): void => {
  if (statSync(path).isDirectory())
    throw new HoldfastError('INVALID_OPTION', `sqlite:${path} is a folder: name a file in it`, { field: 'url' })
  accessSync(path, constants.R_OK | constants.W_OK)
  accessSync(dirname(path), constants.W_OK | constants.X_OK)
}

/** statfs types of network file systems, where WAL's shared memory does not work between hosts. */
const NETWORK_FILES: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
])

const refuseNetworkFiles = (path: string): void => {
  const kind = NETWORK_FILES.get(statfsSync(path).type)
  if (kind !== undefined) {
    throw new HoldfastError(
      'STORE_UNAVAILABLE',
      `sqlite:${path} is on ${kind}: SQLite needs a local disk for several processes. Use a local path, or another store`,
    )
  }
}

const setPragmas = (db: DatabaseSync): void => {
  const isNew = pragma(db, 'page_count') === 0
  // 8 KiB pages: a task of some hundred bytes grows twice in its life, and larger pages split half as often.
  if (isNew) db.exec('pragma page_size = 8192; pragma auto_vacuum = incremental')
  db.exec(
    'pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -32000; pragma wal_autocheckpoint = 2000; pragma journal_size_limit = 67108864',
  )
  const mode = pragma(db, 'journal_mode')
  const synchronous = pragma(db, 'synchronous')
  if (mode !== 'wal' || synchronous !== 2) {
    throw new HoldfastError(
      'STORE_UNAVAILABLE',
      `the file could not be set to journal_mode=wal and synchronous=full (it has ${mode}, ${synchronous})`,
    )
  }
}

const pragma = (db: DatabaseSync, name: string): unknown => Object.values(db.prepare(`pragma ${name}`).get() ?? {})[0]

const OPEN_PATIENCE = 10_000
const idle = new Int32Array(new SharedArrayBuffer(4))

/** Used only while opening, on the store's own thread, where nothing else waits. */
const retryWhileBusy = <T>(work: () => T): T => {
  const until = Date.now() + OPEN_PATIENCE
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (asHoldfastError(error, '').code !== 'STORE_BUSY' || Date.now() > until) throw error
      Atomics.wait(idle, 0, 0, 2 + Math.random() * 20)
    }
  }
}

/** Identifies the file to the kernel, so that a deleted or replaced file is noticed. null if there is no file. */
export const fileIdentity = (path: string): string | null => {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`
}

const statements = new WeakMap<DatabaseSync, Map<string, StatementSync>>()

/** Returns the statement, prepared once per connection. Rows are arrays. */
export const prepared = (db: DatabaseSync, sql: string): StatementSync => {
  let known = statements.get(db)
  if (known === undefined) {
    known = new Map()
    statements.set(db, known)
  }
  let statement = known.get(sql)
  if (statement === undefined) {
    statement = db.prepare(sql)
    statement.setReturnArrays(true)
    known.set(sql, statement)
  }
  return statement
}
