/** What a server does for a system: bytes of write-ahead log, and CPU of all its processes. */
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import type { Server } from './servers.ts'

/** Since an arbitrary start: only differences are meaningful. Null if unknown here. */
export interface Reading {
  readonly walBytes: number | null
  readonly cpuSeconds: number | null
}

export interface Meter {
  read(): Promise<Reading>
  close(): Promise<void>
}

export const noMeter: Meter = { read: async () => ({ walBytes: null, cpuSeconds: null }), close: async () => {} }

/** For the server that a system uses, found from its environment variables. */
export const meterOf = async (server: Server, env: NodeJS.ProcessEnv): Promise<Meter> => {
  if (server === 'postgres') return postgresMeter(env['BENCH_DATABASE_URL']!)
  return server === 'redis' ? processMeter(Number(env['BENCH_REDIS_PID'])) : noMeter
}

export const postgresMeter = async (url: string): Promise<Meter> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows: own } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const postmaster = statOf(own[0]!.pid)?.parent
  return {
    async read() {
      const { rows } = await client.query<{ bytes: string }>(
        `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as bytes`,
      )
      return { walBytes: Number(rows[0]!.bytes), cpuSeconds: postmaster === undefined ? null : cpuOf(postmaster) }
    },
    close: () => client.end(),
  }
}

export const processMeter = (pid: number): Meter => ({
  ...noMeter,
  read: async () => ({ walBytes: null, cpuSeconds: cpuOf(pid) }),
})

const TICKS_PER_SECOND = 100

interface ProcessStat {
  readonly parent: number
  readonly own: number
  readonly reaped: number
}

/** Linux only: elsewhere undefined. */
const statOf = (pid: number | string): ProcessStat | undefined => {
  try {
    // The name, in parentheses, may contain spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
    const ticks = (n: number): number => Number(fields[n])
    return { parent: Number(fields[1]), own: ticks(11) + ticks(12), reaped: ticks(13) + ticks(14) }
  } catch {
    return undefined
  }
}

/** CPU of a process, its children, and its former children. */
const cpuOf = (pid: number): number | null => {
  const main = statOf(pid)
  if (main === undefined) return null
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(name) ?? [])
    .filter(({ parent }) => parent === pid)
  return [main, ...children].reduce((sum, { own, reaped }) => sum + own + reaped, 0) / TICKS_PER_SECOND
}
