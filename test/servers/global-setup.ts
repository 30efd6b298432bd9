/** Starts each server once for all files of the project, and says by name which could not be started, and why. */
import { existsSync } from 'node:fs'
import type { TestProject } from 'vitest/node'
import { startPostgres } from './postgres.ts'

/** A server that is there, or the reason why it is not. */
export type TestServer =
  | { readonly name: string; readonly url: string }
  | { readonly name: string; readonly missing: string }

declare module 'vitest' {
  interface ProvidedContext {
    /** The first is the one on which everything runs; the others also run what every store must do. */
    readonly postgres: readonly TestServer[]
  }
}

/** Where Debian and Ubuntu put the oldest version that is supported. */
const OLDEST = { name: 'postgres 15', native: '/usr/lib/postgresql/15' }
/** Nothing here cuts the power; the tests that stop a server start one of their own, which syncs. */
const settings = { fsync: 'off', full_page_writes: 'off' }

const stops: (() => Promise<void>)[] = []

const tryToStart = async (name: string, native?: string): Promise<TestServer> => {
  try {
    const server = await startPostgres({ settings, ...(native === undefined ? null : { native }) })
    stops.push(server.remove)
    return { name: native === undefined ? `postgres ${server.version}` : name, url: server.url }
  } catch (error) {
    return { name, missing: error instanceof Error ? error.message.trim() : String(error) }
  }
}

const mainServer = async (): Promise<TestServer> => {
  const yours = process.env['HOLDFAST_TEST_POSTGRES_URL']
  return yours ? { name: 'postgres (yours)', url: yours } : tryToStart('postgres 18')
}

const oldestServer = async (): Promise<TestServer> =>
  existsSync(`${OLDEST.native}/bin/postgres`)
    ? tryToStart(OLDEST.name, OLDEST.native)
    : { name: OLDEST.name, missing: `there is no ${OLDEST.native}/bin/postgres` }

export default async (project: TestProject): Promise<() => Promise<void>> => {
  const servers = [await mainServer(), await oldestServer()]
  for (const server of servers)
    if ('missing' in server) process.stderr.write(`  SKIPPED ${server.name}: ${server.missing}\n`)
  const required = (process.env['HOLDFAST_REQUIRE'] ?? '').split(',').includes('postgres')
  if (required && 'missing' in servers[0]!) {
    throw new Error(`HOLDFAST_REQUIRE=postgres, but ${servers[0].name} could not be started: ${servers[0].missing}`)
  }
  project.provide('postgres', servers)
  return async () => {
    for (const stop of stops) await stop()
  }
}
