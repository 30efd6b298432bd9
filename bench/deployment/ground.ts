/** The environment of one run of one system: an empty database, file or Redis, removed afterwards. */
import { closeSync, cpSync, fsyncSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, onServer } from '../database.ts'
import type { Environment, Servers } from '../servers.ts'
import type { DeployedSystem } from './systems.ts'

/** What a run reports to the coordinator besides its figures. */
export interface Listener {
  /** Adds to the processor time that belongs to the benchmark. */
  ours(cpuSeconds: number): void
  /** For the report. */
  note(text: string): void
}

export interface Ground extends Listener {
  readonly system: DeployedSystem
  readonly env: Environment
  /** A folder, for the systems that keep files. */
  readonly dir: string
}

const withFolder = async <T>(use: (dir: string) => Promise<T>): Promise<T> => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  try {
    return await use(dir)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

export const withGround = <T>(
  { lend }: Servers,
  system: DeployedSystem,
  listener: Listener,
  use: (ground: Ground) => Promise<T>,
): Promise<T> => lend(system, (env) => withFolder((dir) => use({ system, env, dir, ...listener })))

/** Unwritten data (a gigabyte) would delay the first fsync of the run by half a minute. */
const flush = (path: string): void => {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}

let copies = 0

/** The same store a second time. No process may be connected to the first. */
export const withCopy = <T>(ground: Ground, use: (copy: Ground) => Promise<T>): Promise<T> => {
  const database = ground.env['BENCH_DATABASE_URL']
  // Every system gets a database while a server runs, even those that use a file.
  if (database === undefined || ground.system.server !== 'postgres')
    return withFolder((dir) => {
      cpSync(ground.dir, dir, { recursive: true })
      for (const file of readdirSync(dir)) flush(join(dir, file))
      return use({ ...ground, dir })
    })
  return withCopyOf(database, (url) => use({ ...ground, env: { ...ground.env, BENCH_DATABASE_URL: url } }))
}

const withCopyOf = async <T>(url: string, use: (url: string) => Promise<T>): Promise<T> => {
  const template = new URL(url).pathname.slice(1)
  const copy = await createDatabase(new URL('/postgres', url).href, `${template}_copy_${++copies}`, template)
  try {
    return await use(copy.url)
  } finally {
    await copy.drop()
  }
}

/** Autovacuum does this a minute later: without it, a run that starts at once would plan without statistics. */
export const settle = async ({ env }: Ground): Promise<void> => {
  const database = env['BENCH_DATABASE_URL']
  if (database !== undefined) await onServer(database, async (client) => void (await client.query('vacuum analyze')))
}
