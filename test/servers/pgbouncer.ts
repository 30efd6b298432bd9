/** A real PgBouncer in transaction mode before a PostgreSQL server, on a free port of loopback. */
import type { ChildProcess } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { debianPackages } from './debian-packages.ts'
import { ended, freePort, spawn, tied, untilSays } from './processes.ts'

export interface PgBouncer {
  /** The server's address, through it. */
  readonly url: string
  readonly version: string
  remove(): Promise<void>
}

/** It refuses to stay root; nobody exists everywhere. */
const user = process.getuid?.() === 0 ? 'user = nobody\n' : ''

export const startPgBouncer = async (server: string): Promise<PgBouncer> => {
  const unpacked = await debianPackages('pgbouncer', {
    suites: ['trixie', 'forky', 'sid'],
    packages: ['pgbouncer', 'libpam0g'],
    programs: ['pgbouncer'],
    libraries: true,
  })
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pgbouncer-'))
  chmodSync(folder, 0o755)
  const { hostname, port, username, pathname } = new URL(server)
  const listenPort = await freePort()
  const settings = join(folder, 'pgbouncer.ini')
  // Two connections to the server for many to PgBouncer: whatever is left on one meets somebody else.
  writeFileSync(
    settings,
    `[databases]
* = host=${hostname} port=${port} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
${user}`,
  )
  const child: ChildProcess = spawn(...tied(...unpacked.command('pgbouncer', [settings])), {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const remove = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await untilSays(child, /process up/)
  } catch (error) {
    await remove()
    throw error
  }
  return { url: `postgres://${username}@127.0.0.1:${listenPort}${pathname}`, version: unpacked.version, remove }
}
