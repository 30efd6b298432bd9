/** The stores of the long campaign: each with a real server, what stands between it and the processes, and what may happen to both. */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Client as Connection } from 'pg'
import type { Duration } from '../../src/index.ts'
import { killLeader } from '../nats/lead.ts'
import { freshBucket } from '../servers/buckets.ts'
import { type FaultRates, startFaultProxy } from '../servers/http-fault-proxy.ts'
import { startNatsCluster } from '../servers/nats.ts'
import { startPostgres } from '../servers/postgres.ts'
import { s3Target, startS3 } from '../servers/s3.ts'
import { startProxy, type TcpProxy } from '../servers/tcp-proxy.ts'
import type { StoreKind } from './interruption-rows.ts'
import { folder, pause, start } from './processes.ts'
import type { Chance } from './seed.ts'

/** How often each has happened so far, by name. */
export type Faults = Record<string, number>

/** What may happen to a store, and resolves when it is over. Returns how often it happened. */
type Fault = (dice: Chance) => Promise<number>

export interface FaultPlace {
  /** With version. */
  readonly server: string
  /** For the checker: nothing stands in between. */
  readonly address: string
  /** For all other processes. */
  readonly through: string
  readonly leaseTtl: number
  /** A server keeps the time. On SQLite the host does, whose clock all processes share. */
  readonly stepsClocks: boolean
  readonly faults: Readonly<Record<string, Fault>>
  /** Milliseconds between two of them, at least and at most. What is never claimed cannot be late, and lapsed leases are only taken after unbroken contact. */
  readonly calm: readonly [least: number, most: number]
  /** Milliseconds between two kills, at least and at most. */
  readonly killEvery: readonly [least: number, most: number]
  /** Within which the task of a dead worker goes on (I10). */
  readonly recovery: Duration
  /** Counted by themselves, such as answers of a proxy. */
  counted(): Faults
  remove(): Promise<void>
}

/** For stores that answer in milliseconds. */
const QUICK = { calm: [4_000, 15_000], killEvery: [200, 900], recovery: '1m' } as const
/**
 * A worker on S3 needs seconds to begin, and requests take as long as many tasks. A queue that nobody serves for a while is swept once a minute: a
 * lease, that minute, a fault and the contact after it.
 */
const SLOW = { calm: [12_000, 25_000], killEvery: [800, 3_000], recovery: '90s' } as const

const MB = 1_048_576
/** Large enough for the tasks of an hour. */
const DISK = 512 * MB

/** A disk of its own that can be filled; null where none can be mounted. */
const mountedDisk = (): string | null => {
  const disk = join(folder(), 'disk')
  mkdirSync(disk)
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'holdfast-campaign', disk])
  return status === 0 ? disk : null
}

const fill = (ballast: string): void => {
  const opened = openSync(ballast, 'w')
  const block = Buffer.alloc(MB)
  try {
    while (writeSync(opened, block) === block.length);
    for (;;) writeSync(opened, block, 0, 4_096)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(opened)
  }
}

const sqlite = async (): Promise<FaultPlace> => {
  const disk = mountedDisk()
  const file = join(disk ?? folder(), 'campaign.db')
  const faults: Record<string, Fault> = {
    'write lock held': async ({ between }) => {
      const holder = start('lock-holder', { file, holds: between(200, 4_000) })
      await holder.end()
      return 1
    },
  }
  if (disk !== null)
    faults['disk full'] = async ({ between }) => {
      const ballast = join(disk, 'ballast')
      fill(ballast)
      await pause(between(200, 2_000))
      rmSync(ballast)
      return 1
    }
  return {
    server: `SQLite ${process.versions['sqlite']}`,
    address: file,
    through: file,
    leaseTtl: 2_000,
    stepsClocks: false,
    ...QUICK,
    faults,
    counted: () => ({}),
    remove: async () => void (disk !== null && spawnSync('umount', ['-l', disk])),
  }
}

/** What networks do. `request`: one whose reply is to get lost. */
const ofNetworks = (proxies: readonly TcpProxy[], request: RegExp): Readonly<Record<string, Fault>> => {
  const all = (change: (proxy: TcpProxy) => void): void => proxies.forEach(change)
  return {
    'cut after the request': async () => {
      const lost = proxies.map((proxy) => proxy.loseReplyTo(request))
      return Promise.race([Promise.race(lost).then(() => 1), pause(1_000).then(() => 0)])
    },
    'half-open': async ({ between }) => {
      all((proxy) => {
        proxy.mode = 'blackhole'
      })
      await pause(between(500, 6_000))
      // What was swallowed is missing in these connections.
      all((proxy) => {
        proxy.mode = 'pass'
        proxy.reset()
      })
      return 1
    },
    'connections reset': async () => proxies.reduce((sum, proxy) => sum + proxy.reset(), 0),
    latency: async ({ between }) => {
      all((proxy) => {
        proxy.delay = between(20, 250)
      })
      await pause(between(1_000, 4_000))
      all((proxy) => {
        proxy.delay = 0
      })
      return 1
    },
  }
}

const postgres = async (): Promise<FaultPlace> => {
  const server = await startPostgres()
  const proxy = await startProxy(server.url)
  const asAdmin = async (statement: string): Promise<number> => {
    const connection = new Connection({ connectionString: server.url })
    await connection.connect()
    try {
      return (await connection.query(statement)).rowCount ?? 0
    } finally {
      await connection.end()
    }
  }
  return {
    server: `PostgreSQL ${server.version}`,
    address: server.url,
    through: proxy.url,
    leaseTtl: 2_000,
    stepsClocks: true,
    ...QUICK,
    faults: {
      ...ofNetworks([proxy], /commit|insert into|update |with /i),
      'server killed': async ({ between }) => {
        await server.kill()
        await pause(between(0, 1_000))
        await server.start()
        return 1
      },
      'backends terminated': () =>
        asAdmin(
          'select pg_terminate_backend(pid) from pg_stat_activity where datname is not null and pid <> pg_backend_pid() and random() < 1.0 / 3',
        ),
    },
    counted: () => ({}),
    async remove() {
      await proxy.close()
      await server.remove()
    },
  }
}

const s3 = async (): Promise<FaultPlace> => {
  const server = await startS3()
  const { endpoint, bucket, region, accessKeyId, secretAccessKey } = s3Target(server.url)
  // As a user gives them: to this process, and to those that it starts.
  process.env['AWS_ACCESS_KEY_ID'] = accessKeyId
  process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey
  const proxy = await startFaultProxy({ seed: 1, endpoint, lateness: 800 })
  const prefix = freshBucket()
  const addressAt = (host: string): string => `s3://${bucket}/${prefix}?endpoint=${host}&region=${region}`
  const withRates =
    (rates: FaultRates, least: number, most: number): Fault =>
    async ({ between }) => {
      proxy.rates = rates
      await pause(between(least, most))
      proxy.rates = {}
      return 1
    }
  return {
    server: `Ceph RGW ${server.version}`,
    address: addressAt(endpoint),
    through: addressAt(proxy.endpoint),
    leaseTtl: 5_000,
    stepsClocks: true,
    ...SLOW,
    faults: {
      throttling: withRates({ unavailable: 0.3, conflict: 0.1 }, 2_000, 6_000),
      'throttling of everything': withRates({ unavailable: 1 }, 500, 4_000),
      latency: withRates({ slow: 0.5 }, 2_000, 6_000),
      'replies lost': withRates({ lostReply: 0.15, truncated: 0.1 }, 2_000, 6_000),
      'half-open': withRates({ swallowed: 0.3 }, 1_000, 4_000),
      'gateway killed': async ({ between }) => {
        await server.killGateway()
        await pause(between(0, 1_000))
        await server.startGateway()
        return 1
      },
    },
    counted: () => {
      const { unavailable, conflict, lostReply, truncated, slow, swallowed } = proxy.faults
      return {
        '500 and 503': unavailable,
        '409': conflict,
        'replies lost': lostReply,
        'bodies cut': truncated,
        'late answers': slow,
        'never answered': swallowed,
      }
    },
    async remove() {
      await proxy.close()
      await server.remove()
    },
  }
}

const nats = async (): Promise<FaultPlace> => {
  const cluster = await startNatsCluster(3, { isHidden: true })
  // Any bytes that come after a write may be its reply.
  const proxies = await Promise.all(cluster.servers.map(({ url }) => startProxy(url, () => true)))
  const bucket = freshBucket()
  const hosts = proxies.map(({ url }) => new URL(url).host).join(',')
  return {
    server: `three nats-server ${cluster.servers[0]!.version}, three replicas`,
    address: `${cluster.url}/${bucket}?replicas=3`,
    through: `nats://${hosts}/${bucket}?replicas=3`,
    leaseTtl: 3_000,
    stepsClocks: true,
    ...QUICK,
    faults: {
      ...ofNetworks(proxies, /PUB \$KV/),
      'leader killed': async ({ between }) => {
        const server = await killLeader(cluster, `KV_${bucket}`)
        await pause(between(0, 1_000))
        await server.start()
        return 1
      },
    },
    counted: () => ({}),
    async remove() {
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await cluster.remove()
    },
  }
}

export const FAULT_PLACES: Readonly<Record<StoreKind, () => Promise<FaultPlace>>> = { sqlite, postgres, s3, nats }
