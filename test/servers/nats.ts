/** A real nats-server with JetStream for the tests, alone or three together, on free ports of loopback. */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { debianPackages } from './debian-packages.ts'
import { ended, freePort, killed, spawn, tied, untilSays } from './processes.ts'

export interface NatsServer {
  readonly url: string
  /** Where it answers /varz and the like. */
  readonly monitor: string
  readonly version: string
  readonly pid: number
  /** The file with its settings, and what is in it: for tests that change them while it is stopped. */
  readonly settings: string
  readonly settingsText: string
  /** kill -9. */
  kill(): Promise<void>
  stop(): Promise<void>
  start(): Promise<void>
  /** Stops it and removes its data. */
  remove(): Promise<void>
}

export interface NatsCluster {
  readonly servers: readonly NatsServer[]
  /** All of them: `nats://one:4222,two:4222`. */
  readonly url: string
  remove(): Promise<void>
}

export interface NatsServerOptions {
  /** 2.15 or what is newest; `oldest`: 2.9, the first that is supported. */
  readonly release?: 'newest' | 'oldest'
  /** Every write is on the disk before it is acknowledged; 2.10 and later. */
  readonly syncAlways?: boolean
  /** The largest message, in bytes. Default: the server's own, 1 MiB. */
  readonly maxPayload?: number
  /** The name of its JetStream among those of connected servers. */
  readonly domain?: string
  /** The servers of a cluster do not tell clients where the others are: for proxies in front of them. */
  readonly isHidden?: boolean
  /** More lines of its configuration. */
  readonly settings?: string
  /** Two users, `writer` and `reader`, with their names as passwords: the reader may not write to a bucket. */
  readonly hasUsers?: boolean
}

interface Program {
  readonly path: string
  readonly version: string
}

/** On the PATH, if it is new enough to show what 2.15 does. */
const onPath = (): Program | undefined => {
  const { stdout } = spawnSync('nats-server', ['--version'], { encoding: 'utf8' })
  const [, version, minor] = /v(2\.(\d+)\.\d+)/.exec(stdout ?? '') ?? []
  return version !== undefined && Number(minor) >= 12 ? { path: 'nats-server', version } : undefined
}

const programOf = async (release: 'newest' | 'oldest'): Promise<Program> => {
  const found = release === 'newest' ? onPath() : undefined
  if (found) return found
  const suites = release === 'newest' ? ['forky', 'sid'] : ['bookworm']
  const unpacked = await debianPackages('nats', { suites, packages: ['nats-server'], programs: ['nats-server'] })
  return { path: unpacked.command('nats-server', [])[0], version: unpacked.version }
}

interface Place {
  readonly port: number
  /** Of the connections between the servers of a cluster. */
  readonly clusterPort: number
  readonly monitorPort: number
}

const newPlace = async (): Promise<Place> => {
  const [port, clusterPort, monitorPort] = await Promise.all([freePort(), freePort(), freePort()])
  return { port, clusterPort, monitorPort }
}

const USERS = `authorization { users: [
  { user: writer, password: writer }
  { user: reader, password: reader, permissions: { publish: { deny: "$KV.>" } } }
] }`

const settingsOf = (
  { port, clusterPort, monitorPort }: Place,
  folder: string,
  all: readonly Place[],
  { syncAlways = false, maxPayload, hasUsers = false, isHidden = false, settings, domain }: NatsServerOptions,
): string => {
  const storage = [`store_dir: ${JSON.stringify(join(folder, 'jetstream'))}`, 'max_mem: 256M', 'max_file: 8G']
  if (syncAlways) storage.push('sync_interval: always')
  if (domain !== undefined) storage.push(`domain: ${domain}`)
  const lines = [
    `listen: "127.0.0.1:${port}"`,
    `http: "127.0.0.1:${monitorPort}"`,
    `server_name: "n${port}"`,
    `jetstream { ${storage.join(', ')} }`,
    ...(maxPayload === undefined ? [] : [`max_payload: ${maxPayload}`]),
    ...(hasUsers ? [USERS] : []),
    ...(settings === undefined ? [] : [settings]),
  ]
  const others = all.filter((other) => other.port !== port)
  if (others.length > 0) {
    const routes = others.map((other) => `"nats://127.0.0.1:${other.clusterPort}"`).join(', ')
    const hidden = isHidden ? ', no_advertise: true' : ''
    lines.push(`cluster { name: holdfast, listen: "127.0.0.1:${clusterPort}", routes: [${routes}]${hidden} }`)
  }
  return `${lines.join('\n')}\n`
}

const startAt = async (
  place: Place,
  all: readonly Place[],
  { path, version }: Program,
  options: NatsServerOptions,
  ready: RegExp,
): Promise<NatsServer> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-nats-'))
  const settings = join(folder, 'nats.conf')
  const settingsText = settingsOf(place, folder, all, options)
  writeFileSync(settings, settingsText)
  let child: ChildProcess
  const startUntil = async (says: RegExp): Promise<void> => {
    child = spawn(...tied(path, ['-c', settings]), { stdio: ['ignore', 'ignore', 'pipe'] })
    await untilSays(child, says)
  }
  const remove = async (): Promise<void> => {
    await killed(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await startUntil(ready)
  } catch (error) {
    await remove()
    throw error
  }
  return {
    url: `nats://127.0.0.1:${place.port}`,
    monitor: `http://127.0.0.1:${place.monitorPort}`,
    version,
    settings,
    settingsText,
    get pid() {
      return child.pid!
    },
    kill: () => killed(child),
    async stop() {
      child.kill('SIGTERM')
      await ended(child)
    },
    start: () => startUntil(/Server is ready/),
    remove,
  }
}

export const startNats = async (options: NatsServerOptions = {}): Promise<NatsServer> => {
  const program = await programOf(options.release ?? 'newest')
  const place = await newPlace()
  return startAt(place, [place], program, options, /Server is ready/)
}

/** Ready when the servers have chosen who leads them. */
export const startNatsCluster = async (size = 3, options: NatsServerOptions = {}): Promise<NatsCluster> => {
  const program = await programOf(options.release ?? 'newest')
  const places = await Promise.all(Array.from({ length: size }, newPlace))
  const starting = places.map((place) => startAt(place, places, program, options, /metadata leader/))
  const results = await Promise.allSettled(starting)
  const servers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const remove = async (): Promise<void> => void (await Promise.all(servers.map((server) => server.remove())))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) {
    await remove()
    throw failed.reason
  }
  return { servers, url: `nats://${places.map(({ port }) => `127.0.0.1:${port}`).join(',')}`, remove }
}
