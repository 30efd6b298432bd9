/** The servers of one run of the benchmark: the same for all systems, on loopback, removed after. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { debianPackages } from '../test/servers/debian-packages.ts'
import { startPostgres } from '../test/servers/postgres.ts'
import { ended, freePort, tied, untilSays } from '../test/servers/processes.ts'
import { createDatabase, onServer } from './database.ts'

export type Environment = Readonly<Record<string, string>>

/** The server that a system needs; null if none. */
export type Server = 'postgres' | 'redis' | null

/** The systems, as far as the servers need to know. */
interface Participant {
  readonly name: string
  readonly server: Server
}

export interface Servers {
  /** Gives a system its own database while `use` runs, with the environment for its processes. */
  lend<T>(participant: Participant, use: (env: Environment) => Promise<T>): Promise<T>
  /** Version and settings, for the report. */
  readonly facts: readonly string[]
  /** Systems whose server is not available. */
  readonly missing: readonly string[]
  stop(): Promise<void>
}

const REDIS = 'redis-server'
const NOTHING: Servers = { lend: (_, use) => use({}), facts: [], missing: [], stop: async () => {} }

export const startServers = async (participants: readonly Participant[]): Promise<Servers> => {
  const wants = new Set(participants.map(({ server }) => server))
  const postgres = wants.has('postgres') ? await postgresServer() : NOTHING
  const redis = wants.has('redis') ? await redisServer(participants) : NOTHING
  return {
    lend: (participant, use) => (participant.server === 'redis' ? redis : postgres).lend(participant, use),
    facts: [...postgres.facts, ...redis.facts],
    missing: redis.missing,
    async stop() {
      await postgres.stop()
      await redis.stop()
    },
  }
}

/** Size of the write-ahead log, which is written once and then reused. */
const WAL_MEGABYTES = 768

/**
 * Default settings (fsync on, 128 MB of buffers), but like a server that has run for a while: a new one creates each log file when
 * it is first needed, and all commits wait for that, 200 ms at a time.
 */
const postgresServer = async (): Promise<Servers> => {
  const server = await startPostgres({ settings: { min_wal_size: `${WAL_MEGABYTES}MB` } })
  await onServer(server.url, async (client) => {
    await client.query('create table filler (text text storage external)')
    await client.query(
      `insert into filler select repeat(md5(n::text), 200) from generate_series(1, ${WAL_MEGABYTES * 100}) n`,
    )
    await client.query('drop table filler')
    await client.query('checkpoint')
  })
  let databases = 0
  return {
    ...NOTHING,
    // Dropped when the process has ended, because a peer's pool may still be closing after the peer has reported its end.
    async lend(_, use) {
      const database = await createDatabase(server.url, `bench_${++databases}`)
      try {
        return await use({ BENCH_DATABASE_URL: database.url })
      } finally {
        await database.drop()
      }
    },
    facts: [
      `PostgreSQL ${server.version} with its defaults (fsync on, shared_buffers 128 MB) and ${WAL_MEGABYTES} MB of write-ahead log to use again, a database for each run.`,
    ],
    stop: () => server.remove(),
  }
}

interface Redis {
  readonly version: string
  command(args: readonly string[]): [string, string[]]
}

/** The one on the PATH, or Debian's. */
const findRedis = async (): Promise<Redis> => {
  const [, version] = /v=(\S+)/.exec(spawnSync(REDIS, ['--version'], { encoding: 'utf8' }).stdout ?? '') ?? []
  if (version !== undefined) return { version, command: (args) => [REDIS, [...args]] }
  const unpacked = await debianPackages('redis', {
    suites: ['trixie', 'forky', 'sid'],
    packages: ['redis-server', 'redis-tools'],
    // The server binary is a link to the second one, which acts by its name.
    programs: [REDIS, 'redis-check-rdb'],
    libraries: true,
  })
  return { version: unpacked.version, command: (args) => unpacked.command(REDIS, args) }
}

const redisServer = async (participants: readonly Participant[]): Promise<Servers> => {
  let redis: Redis
  try {
    redis = await findRedis()
  } catch (error) {
    const missing = participants.filter(({ server }) => server === 'redis').map(({ name }) => name)
    const facts = [`${missing.join(', ')}: skipped, because there is no ${REDIS}: ${(error as Error).message}.`]
    return { ...NOTHING, missing, facts }
  }
  const port = await freePort()
  const options = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no']
  const child: ChildProcess = spawn(...tied(...redis.command(options)), { stdio: ['ignore', 'pipe', 'pipe'] })
  await untilSays(child, /[Rr]eady to accept connections/)
  return {
    ...NOTHING,
    async lend(_, use) {
      await flush(port)
      return use({ BENCH_REDIS_URL: `redis://127.0.0.1:${port}`, BENCH_REDIS_PID: String(child.pid) })
    },
    facts: [`Redis ${redis.version} without persistence: what it holds is gone when it stops.`],
    async stop() {
      child.kill('SIGKILL')
      await ended(child)
    },
  }
}

/** Redis takes a command as a plain line, so no client library is needed here. */
const flush = async (port: number): Promise<void> => {
  const socket = connect(port, '127.0.0.1')
  socket.write('FLUSHALL\r\n')
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  if (!answer.toString().startsWith('+OK')) throw new Error(`Redis was not emptied: ${answer.toString().trim()}`)
}
