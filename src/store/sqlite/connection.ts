/** Opens the file as it must be opened: 0600, WAL, synchronous=FULL, short busy timeout. Prepared statements per connection. */
import { accessSync, closeSync, constants, existsSync, openSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { HoldfastError } from '../../core/errors.ts'
import { asHoldfastError } from './errors.ts'
import { migrate, readMeta } from './schema.ts'
import { mustBeSafe, versionOf } from './version.ts'

export interface Opened {
  readonly db: DatabaseSync
  readonly identity: string
  readonly created: boolean
}

/** SQLite's own wait starves other processes and blocks for seconds; ours is short, with jittered retries above it. */
const BUSY_TIMEOUT = 5

export const openFile = (path: string, options: { create: boolean; identity: string }): Opened => {
  const address = `sqlite:${path}`
  let db: DatabaseSync | undefined
  try {
    makeFile(path, options.create)
    mustBeWritable(path)
    refuseNetworkFiles(path)
    db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT })
    const created = retryWhileBusy(() => {
      // The first statement of a connection reads the file, whatever it asks for: it may find it locked.
      mustBeSafe(versionOf(db!))
      setPragmas(db!)
      return migrate(db!, options.identity)
    })
    // So that the file itself says which store it is: with only the log to say so, a lost log would leave what looks like a new file.
    if (created) db.exec('pragma wal_checkpoint(truncate)')
    const identity = readMeta(db, 'identity')
    if (identity === null) throw new HoldfastError('STORE_CORRUPT', `${address}: the store has no identity`)
    return { db, identity, created }
  } catch (error) {
    db?.close()
    throw asHoldfastError(error, address)
  }
}

/** Made by hand, before SQLite sees it, so that payloads are never readable by others; -wal and -shm take its mode. */
const makeFile = (path: string, create: boolean): void => {
  if (existsSync(path)) return
  if (!create) throw new HoldfastError('STORE_NOT_FOUND', `sqlite:${path}: there is no such file`)
  mustHaveFolder(path)
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    // Another process made it in between: that is the file we want.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** A folder is not created: an address with a typo would create a store that is not found again. */
const mustHaveFolder = (path: string): void => {
  const folder = dirname(path)
  if (existsSync(folder)) return
  throw new HoldfastError(
    'STORE_NOT_FOUND',
    `sqlite:${path}: there is no folder ${folder}. Correct the address, or make the folder first`,
    { folder },
  )
}

/** Asked beforehand, because SQLite says of a missing permission only that it cannot open the file. The folder gets -wal and -shm. */
const mustBeWritable = (path: string): void => {
  if (statSync(path).isDirectory())
    throw new HoldfastError('INVALID_OPTION', `sqlite:${path} is a folder: name a file in it`, { field: 'url' })
  accessSync(path, constants.R_OK | constants.W_OK)
  accessSync(dirname(path), constants.W_OK | constants.X_OK)
}

/** statfs types on which WAL's shared memory does not work between hosts. */
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
  // 8 KiB pages: a task of some hundred bytes grows twice in its life, and half as many pages then split.
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

/** Only while opening, on the store's own thread, where nothing else waits. */
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

/** Which file this is, as the kernel knows it: a deleted or replaced file shows. null: there is none. */
export const fileIdentity = (path: string): string | null => {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`
}

const statements = new WeakMap<DatabaseSync, Map<string, StatementSync>>()

/** The statement, prepared once per connection; rows come as arrays. */
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
