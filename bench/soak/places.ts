/** Where each store is kept during a soak, and what it and its server use. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { freshBucket } from '../../test/servers/buckets.ts'
import { startNats } from '../../test/servers/nats.ts'
import { startPostgres } from '../../test/servers/postgres.ts'
import { startSimulatedS3 } from '../../test/servers/simulated-s3/start.ts'
import type { Figures } from './sample.ts'

export interface Place {
  readonly address: string
  /** For the processes that use it. */
  readonly env: Readonly<Record<string, string>>
  /** Which server, for the report. */
  readonly server: string
  figures(): Promise<Figures>
  remove(): Promise<void>
}

const MB = 1_048_576

const sizeOf = (path: string): number => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) / MB

const sqlite = async (): Promise<Place> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-soak-'))
  const file = join(folder, 'soak.db')
  const numberOf = (database: DatabaseSync, pragma: string): number =>
    Number(Object.values(database.prepare(`pragma ${pragma}`).get()!)[0])
  return {
    address: `sqlite:${file}`,
    env: {},
    server: `SQLite ${process.versions['sqlite']}`,
    async figures() {
      const database = new DatabaseSync(file, { readOnly: true })
      const free = (numberOf(database, 'freelist_count') * numberOf(database, 'page_size')) / MB
      database.close()
      return { database: sizeOf(file), wal: sizeOf(`${file}-wal`), free }
    },
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** The log is kept by size, so only what it would be after a checkpoint is not of interest. */
const SIZES = `
  select pg_database_size(current_database()) as database,
         sum(pg_relation_size(relid)) as tables,
         sum(pg_indexes_size(relid)) as indexes,
         sum(n_dead_tup) as dead,
         (select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()) as connections
    from pg_stat_user_tables`

const postgres = async (): Promise<Place> => {
  const server = await startPostgres()
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  return {
    address: server.url,
    env: {},
    server: `PostgreSQL ${server.version}`,
    async figures() {
      const { rows } = await client.query<Record<string, string>>(SIZES)
      const { database, tables, indexes, dead, connections } = rows[0]!
      return {
        database: Number(database) / MB,
        tables: Number(tables) / MB,
        indexes: Number(indexes) / MB,
        dead: Number(dead),
        connections: Number(connections),
      }
    },
    async remove() {
      await client.end()
      await server.remove()
    },
  }
}

interface StreamTotals {
  readonly streams: number
  readonly consumers: number
  readonly messages: number
  readonly bytes: number
}

const nats = async (): Promise<Place> => {
  const server = await startNats()
  const ask = async <T>(path: string): Promise<T> => (await (await fetch(server.monitor + path)).json()) as T
  return {
    address: `${server.url}/${freshBucket()}`,
    env: {},
    server: `nats-server ${server.version}`,
    async figures() {
      const { consumers, messages, bytes } = await ask<StreamTotals>('/jsz')
      const { connections } = await ask<{ readonly connections: number }>('/varz')
      return { messages, consumers, stored: bytes / MB, connections }
    },
    remove: () => server.remove(),
  }
}

/** Of our own, in memory, with a latency: a real one would cost more than the soak. */
const s3 = async (): Promise<Place> => {
  const server = await startSimulatedS3({ latency: 15 })
  const { url, bucket, credentials } = server.fresh()
  return {
    address: url,
    env: { AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey },
    server: 'a simulated S3 with a latency of 15 ms',
    async figures() {
      const objects = Object.values(await server.objects(bucket))
      return { objects: objects.length, stored: objects.reduce((sum, { length }) => sum + length, 0) / MB }
    },
    remove: () => server.remove(),
  }
}

const memory = async (): Promise<Place> => ({
  address: 'memory:',
  env: {},
  server: 'one process',
  figures: async () => ({}),
  remove: async () => {},
})

export const PLACES = { sqlite, postgres, s3, nats, memory } as const
export type StoreName = keyof typeof PLACES
