/**
 * Starts each server once for all files of the project, when the first file asks for it, and says by name which could not
 * be started, and why. It lives in the main process, to which the servers are tied.
 */
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import type { ServerKind, TestServer } from './ask.ts'
import { startNats } from './nats.ts'
import { startPostgres } from './postgres.ts'
import { startS3 } from './s3.ts'

interface Started {
  readonly url: string
  readonly version: string
  remove(): Promise<void>
}

/** Where Debian and Ubuntu put the oldest version that is supported. */
const OLDEST_POSTGRES = '/usr/lib/postgresql/15'
/** Nothing here cuts the power; the tests that stop a server start one of their own, which syncs. */
const settings = { fsync: 'off', full_page_writes: 'off' }

const running: Started[] = []
/** For the line that says what the servers cost. */
const seconds: string[] = []
let waited = 0
let starting = 0
let since = 0

const tryToStart = async (name: string, release: string, start: () => Promise<Started>): Promise<TestServer> => {
  const begun = performance.now()
  if (starting++ === 0) since = begun
  try {
    const server = await start()
    running.push(server)
    seconds.push(`${name} ${server.version} in ${((performance.now() - begun) / 1_000).toFixed(1)} s`)
    return { name: `${name} ${server.version}`, url: server.url }
  } catch (error) {
    const missing = error instanceof Error ? error.message.trim() : String(error)
    process.stderr.write(`  SKIPPED ${name} ${release}: ${missing}\n`)
    return { name: `${name} ${release}`, missing }
  } finally {
    if (--starting === 0) waited += performance.now() - since
  }
}

const oldestPostgres = async (): Promise<Started> => {
  if (!existsSync(`${OLDEST_POSTGRES}/bin/postgres`)) throw new Error(`there is no ${OLDEST_POSTGRES}/bin/postgres`)
  return startPostgres({ settings, native: OLDEST_POSTGRES })
}

/** The first of each may be yours instead. */
const STARTS: Readonly<Record<ServerKind, { readonly yours: string; readonly start: (() => Promise<TestServer>)[] }>> =
  {
    postgres: {
      yours: 'HOLDFAST_TEST_POSTGRES_URL',
      start: [
        () => tryToStart('postgres', '18', () => startPostgres({ settings })),
        () => tryToStart('postgres', '15', oldestPostgres),
      ],
    },
    s3: { yours: 'HOLDFAST_TEST_S3_URL', start: [() => tryToStart('s3 by radosgw', '20', startS3)] },
    nats: {
      yours: 'HOLDFAST_TEST_NATS_URL',
      start: [
        () => tryToStart('nats', '2.15', () => startNats()),
        () => tryToStart('nats', '2.9', () => startNats({ release: 'oldest' })),
      ],
    },
  }

const asked = new Map<ServerKind, Promise<readonly TestServer[]>>()

const startAll = (kind: ServerKind): Promise<readonly TestServer[]> => {
  const { yours, start } = STARTS[kind]
  const url = process.env[yours]
  const [first, ...others] = start
  const main = async (): Promise<TestServer> => (url ? { name: `${kind} (yours)`, url } : first!())
  return Promise.all([main(), ...others.map((other) => other())])
}

const isKind = (text: string): text is ServerKind => text in STARTS

/** Asked for by another project. */
const ELSEWHERE = ['browser']

const checkRequired = (): void => {
  for (const name of (process.env['HOLDFAST_REQUIRE'] ?? '').split(',').filter((name) => name !== ''))
    if (!isKind(name) && !ELSEWHERE.includes(name))
      throw new Error(`HOLDFAST_REQUIRE names ${name}: there are ${[...Object.keys(STARTS), ...ELSEWHERE].join(', ')}`)
}

export default async (project: TestProject): Promise<() => Promise<void>> => {
  checkRequired()
  const desk = createServer((request, response) => {
    const kind = request.url!.slice(1)
    if (!isKind(kind)) return void response.writeHead(404).end()
    const servers = asked.get(kind) ?? startAll(kind)
    asked.set(kind, servers)
    void servers.then((all) => response.end(JSON.stringify(all)))
  })
  await new Promise<void>((done) => desk.listen(0, '127.0.0.1', done))
  project.provide('servers', `http://127.0.0.1:${(desk.address() as AddressInfo).port}`)
  return async () => {
    desk.close()
    await Promise.allSettled(asked.values())
    await Promise.all(running.map((server) => server.remove()))
    if (seconds.length > 0)
      process.stderr.write(`  servers: ${seconds.join(', ')}; ${(waited / 1_000).toFixed(1)} s in all\n`)
  }
}
