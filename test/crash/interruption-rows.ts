/** The rows of the table in docs/guarantees.md: each store, where it comes from, and what interrupts it. */
import { join } from 'node:path'
import { Client as Connection } from 'pg'
import { freshBucket } from '../servers/buckets.ts'
import { startNats } from '../servers/nats.ts'
import { startPostgres } from '../servers/postgres.ts'
import { withChildren } from '../servers/processes.ts'
import { s3Target, startS3 } from '../servers/s3.ts'
import type { Interruption } from './interruption.ts'
import { type Child, folder, pause, start } from './processes.ts'

export type StoreKind = 'sqlite' | 'postgres' | 's3' | 'nats'

export interface Ground {
  readonly rows: readonly Interruption[]
  /** The address of an empty store. */
  fresh(): Promise<string>
  /** Ends a third of the connections to it on the server, chosen by chance, and returns how many. */
  endConnections?(address: string): Promise<number>
  remove(): Promise<void>
}

type Row = Pick<Interruption, 'name' | 'begin'> & Partial<Interruption>

const WORKERS = 2
const rowOf = (row: Row): Interruption => ({ workers: WORKERS, newcomersAfter: 1_000, ...row })

const send = (signal: NodeJS.Signals, pids: readonly number[]): void => {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // A process of the server that has ended by itself.
    }
  }
}

const suspending = (name: string, pids: (everyone: readonly Child[]) => readonly number[]): Row => ({
  name,
  begin: async (_, everyone) => {
    const stopped = pids(everyone)
    send('SIGSTOP', stopped)
    return async () => send('SIGCONT', stopped)
  },
})

/** Much shorter than a lease, and long enough to look for work. */
const HEAD_START = 1_000

/**
 * Takers are suspended too: one that is awake for a lease length takes what lapsed, and that is right. So newcomers start so late that they have
 * had contact for less when all go on. Takers go on before the workers: otherwise it depends on chance whether one looks before the leases are
 * renewed.
 */
const EVERYONE_SUSPENDED = rowOf({
  name: 'all workers suspended',
  newcomersAfter: 6_000,
  begin: async (_, everyone) => {
    // Workers are started first.
    const stopped = everyone.map(({ pid }) => pid)
    send('SIGSTOP', stopped)
    return async () => {
      send('SIGCONT', stopped.slice(WORKERS))
      await pause(HEAD_START)
      send('SIGCONT', stopped.slice(0, WORKERS))
    }
  },
})

const sqlite = async (): Promise<Ground> => ({
  fresh: async () => `sqlite:${join(folder(), 'tasks.db')}`,
  remove: async () => {},
  rows: [
    rowOf({
      name: 'write lock held by another process',
      workers: 6,
      begin: async (url) => {
        const holder = start('lock-holder', { file: url.replace('sqlite:', ''), holds: 3_600_000 })
        await holder.heard('locked')
        return async () => void (await holder.kill())
      },
    }),
    EVERYONE_SUSPENDED,
  ],
})

const locked = (name: string, mode: 'access exclusive' | 'share'): Interruption =>
  rowOf({
    name,
    begin: async (url) => {
      const connection = new Connection({ connectionString: url })
      await connection.connect()
      await connection.query('begin')
      await connection.query(`lock table holdfast.task in ${mode} mode`)
      return () => connection.end()
    },
  })

const postgres = async (): Promise<Ground> => {
  const server = await startPostgres()
  let databases = 0
  return {
    fresh: async () => {
      const name = `tasks_${databases++}`
      const connection = new Connection({ connectionString: server.url })
      await connection.connect()
      await connection.query(`create database ${name}`)
      await connection.end()
      return Object.assign(new URL(server.url), { pathname: `/${name}` }).href
    },
    endConnections: async (address) => {
      const connection = new Connection({ connectionString: server.url })
      await connection.connect()
      const { rowCount } = await connection.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and random() < 1.0 / 3',
        [new URL(address).pathname.slice(1)],
      )
      await connection.end()
      return rowCount ?? 0
    },
    remove: () => server.remove(),
    rows: [
      rowOf({
        name: 'server stopped and started',
        begin: async () => {
          await server.stop('immediate')
          return () => server.start()
        },
      }),
      locked('LOCK TABLE', 'access exclusive'),
      // As CREATE INDEX does: what can be read says nothing about what can be written.
      locked('LOCK TABLE for writes alone', 'share'),
      rowOf(suspending('server suspended', () => withChildren(server.pid))),
      EVERYONE_SUSPENDED,
    ],
  }
}

const s3 = async (): Promise<Ground> => {
  const server = await startS3()
  const target = s3Target(server.url)
  // As a user gives them: to this process, and to those that it starts.
  process.env['AWS_ACCESS_KEY_ID'] = target.accessKeyId
  process.env['AWS_SECRET_ACCESS_KEY'] = target.secretAccessKey
  return {
    fresh: async () => `s3://${target.bucket}/${freshBucket()}?endpoint=${target.endpoint}&region=${target.region}`,
    remove: () => server.remove(),
    rows: [
      rowOf({
        name: 'gateway killed and started',
        begin: async () => {
          await server.killGateway()
          return () => server.startGateway()
        },
      }),
      rowOf(suspending('server suspended', () => server.pids())),
      EVERYONE_SUSPENDED,
    ],
  }
}

const nats = async (): Promise<Ground> => {
  const server = await startNats()
  return {
    fresh: async () => `${server.url}/${freshBucket()}`,
    remove: () => server.remove(),
    rows: [
      rowOf({
        name: 'server killed and started',
        begin: async () => {
          await server.kill()
          return () => server.start()
        },
      }),
      rowOf(suspending('server suspended', () => [server.pid])),
      EVERYONE_SUSPENDED,
    ],
  }
}

export const GROUNDS: Readonly<Record<StoreKind, () => Promise<Ground>>> = { sqlite, postgres, s3, nats }
