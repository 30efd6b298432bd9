/** The servers of one run of the benchmark: the same for all systems, on loopback, removed after. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { startPostgres } from '../test/servers/postgres.ts'
import { ended, freePort, tied, untilSays } from '../test/servers/processes.ts'
import type { Entrant } from './systems.ts'

export interface Servers {
  /** How a system's process finds them. */
  readonly env: Readonly<Record<string, string>>
  /** Version and settings, for the report. */
  readonly facts: readonly string[]
  /** Whoever needs a server that could not be had. */
  readonly missing: readonly string[]
  stop(): Promise<void>
}

const REDIS = 'redis-server'
const NOTHING: Servers = { env: {}, facts: [], missing: [], stop: async () => {} }

export const startServers = async (entrants: readonly Entrant[]): Promise<Servers> => {
  const wants = new Set(entrants.map(({ server }) => server))
  const postgres = wants.has('postgres') ? await postgresServer() : NOTHING
  const redis = wants.has('redis') ? await redisServer(entrants) : NOTHING
  return {
    env: { ...postgres.env, ...redis.env },
    facts: [...postgres.facts, ...redis.facts],
    missing: redis.missing,
    async stop() {
      await postgres.stop()
      await redis.stop()
    },
  }
}

/** As it comes: fsync on, 128 MB of buffers. */
const postgresServer = async (): Promise<Servers> => {
  const server = await startPostgres()
  return {
    ...NOTHING,
    env: { BENCH_POSTGRES_URL: server.url },
    facts: [
      `PostgreSQL ${server.version} with its defaults (fsync on, shared_buffers 128 MB), a database for each run.`,
    ],
    stop: () => server.remove(),
  }
}

const redisServer = async (entrants: readonly Entrant[]): Promise<Servers> => {
  const [, version] = /v=(\S+)/.exec(spawnSync(REDIS, ['--version'], { encoding: 'utf8' }).stdout ?? '') ?? []
  if (version === undefined) {
    const missing = entrants.filter(({ server }) => server === 'redis').map(({ name }) => name)
    return {
      ...NOTHING,
      missing,
      facts: [`${missing.join(', ')}: skipped, because there is no ${REDIS} on the PATH.`],
    }
  }
  const port = await freePort()
  const options = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no']
  const child: ChildProcess = spawn(...tied(REDIS, options), { stdio: ['ignore', 'pipe', 'pipe'] })
  await untilSays(child, /[Rr]eady to accept connections/)
  return {
    ...NOTHING,
    env: { BENCH_REDIS_URL: `redis://127.0.0.1:${port}`, BENCH_REDIS_PID: String(child.pid) },
    facts: [`Redis ${version} without persistence: what it holds is gone when it stops.`],
    async stop() {
      child.kill('SIGKILL')
      await ended(child)
    },
  }
}
