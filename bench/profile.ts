/** What PostgreSQL does for one task of a drain: CPU, log records by kind, statements and commits. */
import { parseArgs } from 'node:util'
import type pg from 'pg'
import { startPostgres } from '../test/servers/postgres.ts'
import { createDatabase, onServer } from './database.ts'
import type { Cell } from './deployment/cells.ts'
import { type Crew, withCrew } from './deployment/crew.ts'
import { withGround } from './deployment/ground.ts'
import { cellsOf, systemsOf } from './deployment/selection.ts'
import type { DeployedSystem } from './deployment/systems.ts'
import { dueOf } from './deployment/tasks.ts'
import { runCommand, wholeNumber } from './options.ts'
import { installPeers } from './peers.ts'
import type { Servers } from './servers.ts'
import { inText } from './tables.ts'

const CELL = 'drain/10-types/4-processes/1-queue'
const TASKS = 60_000

const HELP = `Drains tasks on PostgreSQL and shows what the server does for each of them.

  node bench/profile.ts [options]    uses the existing dist

  --system NAME    a system on PostgreSQL (default holdfast-postgres)
  --cell NAME      a drain cell, or the mix, of bench/main.ts (default ${CELL})
  --tasks N        how many tasks wait (default ${TASKS})
  --url URL        a server with pg_stat_statements loaded (default: a temporary one)
  --help           print this help
`

const SETTINGS = { min_wal_size: '768MB', shared_preload_libraries: 'pg_stat_statements', max_wal_size: '4GB' }

interface Profile {
  readonly tasks: number
  readonly seconds: number
  readonly serverCpuSeconds: number
  readonly workerCpuSeconds: number
  /** Calls, rows, milliseconds, bytes of log and buffers of each statement. */
  readonly statements: readonly (readonly [
    text: string,
    calls: number,
    rows: number,
    ms: number,
    wal: number,
    buffers: number,
  ])[]
  readonly log: readonly (readonly [record: string, count: number, bytes: number, pageBytes: number])[]
  readonly commits: number
  readonly syncs: number
  readonly peakMegabytes: number
}

/** Rows as arrays. */
const rowsOf = async (client: pg.Client, text: string, values: unknown[] = []): Promise<unknown[][]> =>
  (await client.query({ text, values, rowMode: 'array' })).rows as unknown[][]

const STATE = `select pg_current_wal_insert_lsn(),
    (select xact_commit from pg_stat_database where datname = current_database()),
    (select sum(fsyncs) from pg_stat_io where object = 'wal')`

/** Connections report their statistics within a second. */
const REPORTED = 'pg_sleep(1.5)'

const drain = async (client: pg.Client, crew: Crew, tasks: number, due: number): Promise<Profile> => {
  const { producer, workers, meter, progress } = crew
  await producer.call('insert', { count: tasks, perCall: 1_000 })
  await client.query(`select pg_stat_statements_reset(), ${REPORTED}`)
  const spent = async (): Promise<number> =>
    (await Promise.all(workers.map((worker) => worker.call('spent')))).reduce((sum, one) => sum + one.cpuSeconds, 0)
  const [before] = await rowsOf(client, STATE)
  const [cpu, server] = [await spent(), await meter.read()]
  const start = performance.now()
  await Promise.all([
    ...workers.map((worker) => worker.call('go', { mark: null })),
    progress(({ ended }) => ended >= due),
  ])
  const seconds = (performance.now() - start) / 1_000
  const [cpuAfter, serverAfter] = [await spent(), await meter.read()]
  const finished = await Promise.all(workers.map((worker) => worker.call('finish')))
  await client.query(`select ${REPORTED}`)
  const [after] = await rowsOf(client, STATE)
  const grown = (at: number): number => Number(after![at]) - Number(before![at])
  const log = await rowsOf(
    client,
    `select "resource_manager/record_type", count, record_size, fpi_size from pg_get_wal_stats($1, $2, true) where count > 0 order by combined_size desc`,
    [before![0], after![0]],
  )
  const statements = await rowsOf(
    client,
    `select regexp_replace(query, '\\s+', ' ', 'g'), calls, rows, total_exec_time, wal_bytes, shared_blks_hit + shared_blks_read from pg_stat_statements
     where toplevel and query !~ 'pg_(sleep|stat|get_wal|wal_lsn)' order by total_exec_time desc limit 8`,
  )
  return {
    tasks: due,
    seconds,
    serverCpuSeconds: serverAfter.cpuSeconds! - server.cpuSeconds!,
    workerCpuSeconds: cpuAfter - cpu,
    statements: statements.map(([text, ...numbers]) => [
      text,
      ...numbers.map(Number),
    ]) as unknown as Profile['statements'],
    log: log.map(([record, ...numbers]) => [record, ...numbers.map(Number)]) as unknown as Profile['log'],
    commits: grown(1),
    syncs: grown(2),
    peakMegabytes: Math.max(...finished.map((one) => one.peakRssMegabytes)),
  }
}

const print = (profile: Profile): void => {
  const { tasks, seconds, statements, log } = profile
  const each = (amount: number, digits = 2): string => (amount / tasks).toFixed(digits)
  const counted = (kind: RegExp): number => log.reduce((sum, one) => sum + (kind.test(one[0]) ? one[1] : 0), 0)
  const ms = statements.reduce((sum, one) => sum + one[3], 0)
  console.log(
    inText(
      [
        {
          title: `For each of ${tasks.toLocaleString('en')} tasks`,
          table: [
            ['', ''],
            ['tasks/s, start-up included', (tasks / seconds).toFixed(0)],
            ['CPU of the server', `${each(profile.serverCpuSeconds * 1e6)} µs`],
            ['CPU of the workers', `${each(profile.workerCpuSeconds * 1e6)} µs`],
            [
              'write-ahead log',
              `${each(
                log.reduce((sum, one) => sum + one[2] + one[3], 0),
                0,
              )} B`,
            ],
            ['row versions by update', each(counted(/^Heap\/(HOT_)?UPDATE/))],
            ['of these without index entries (HOT)', each(counted(/^Heap\/HOT_UPDATE/))],
            ['index entries', each(counted(/^Btree\/INSERT_(LEAF|POST)/))],
            ['tasks in a transaction', (tasks / profile.commits).toFixed(0)],
            ['tasks in a sync of the log', (tasks / profile.syncs).toFixed(0)],
            ['peak memory of a worker', `${profile.peakMegabytes.toFixed(0)} MB`],
          ],
        },
        {
          title: 'Write-ahead log, by kind of record',
          table: [
            ['record', 'a task', 'bytes a task', 'whole pages, bytes a task'],
            ...log
              .slice(0, 10)
              .map(([kind, count, bytes, pages]) => [kind, each(count), each(bytes, 0), each(pages, 0)]),
          ],
        },
        {
          title: 'Statements',
          table: [
            ['share of time', 'calls', 'rows a call', 'ms a call', 'log, bytes a task', 'buffers a task', 'statement'],
            ...statements.map(([text, calls, rows, took, wal, buffers]) => [
              `${((took / ms) * 100).toFixed(0)} %`,
              String(calls),
              (rows / calls).toFixed(0),
              (took / calls).toFixed(2),
              each(wal, 0),
              each(buffers, 1),
              text.trim().slice(0, 110),
            ]),
          ],
        },
      ],
      [],
    ),
  )
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      system: { type: 'string', default: 'holdfast-postgres' },
      cell: { type: 'string', default: CELL },
      tasks: { type: 'string', default: String(TASKS) },
      url: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const [cell] = cellsOf({ only: [values.cell], types: [], processes: [], queues: [] })
  const [system] = systemsOf(['postgres'], [values.system], true)
  const tasks = wholeNumber(values.tasks, '--tasks')
  if (system!.isPeer) installPeers()
  const server = values.url === undefined ? await startPostgres({ settings: SETTINGS }) : null
  try {
    const database = await createDatabase(server?.url ?? values.url!, `profile_${process.pid}`)
    try {
      print(await profileOf(database.url, system!, cell!, tasks))
    } finally {
      await database.drop()
    }
  } finally {
    await server?.remove()
  }
}

const profileOf = (url: string, system: DeployedSystem, { shape, processes }: Cell, tasks: number): Promise<Profile> =>
  onServer(url, async (client) => {
    await client.query('create extension pg_stat_statements; create extension pg_walinspect')
    const servers: Servers = {
      lend: (_, use) => use({ BENCH_DATABASE_URL: url }),
      facts: [],
      missing: [],
      stop: async () => {},
    }
    return withGround(servers, system, { ours: () => {}, note: () => {} }, (ground) =>
      withCrew(ground, { shape, processes, isLive: false, hasProducer: true }, (crew) =>
        drain(client, crew, tasks, dueOf(shape, tasks)),
      ),
    )
  })

await runCommand(main)
