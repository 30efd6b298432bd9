/** A real server that says no: each way has its reason, names host and database, gives advice of its own, and stores nothing. */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, type HoldfastError, silentLogger } from '../../src/index.ts'
import { cleanUp, folder } from '../crash/processes.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { freePort } from '../servers/processes.ts'
import { runSql } from '../servers/schemas.ts'
import { onPostgres } from './setup.ts'

cleanUp()

/** Who is let in, and how. */
const RULES = `
host all ann  127.0.0.1/32 scram-sha-256
host all carl 127.0.0.1/32 reject
host all all  127.0.0.1/32 trust
`

onPostgres('a server that says no', () => {
  let server: PostgresServer

  beforeAll(async () => {
    const place = folder()
    chmodSync(place, 0o755)
    writeFileSync(join(place, 'pg_hba.conf'), RULES)
    server = await startPostgres({ settings: { hba_file: join(place, 'pg_hba.conf') } })
    await runSql(server.url, `create role ann login password 'right'`, 'create role carl login')
  })
  afterAll(() => server.remove())

  const refusal = async (url: string): Promise<HoldfastError> => {
    const opened = connect(url, { create: true, logger: silentLogger })
    await opened.then(
      (client) => client.close(),
      () => {},
    )
    return opened.then(
      () => Promise.reject(new Error(`${url} let us in`)),
      (error: HoldfastError) => error,
    )
  }

  /** The server's address with another user, database or setting. */
  const at = (change: (url: URL) => void): string => {
    const url = new URL(server.url)
    change(url)
    return url.href
  }

  const user = (name: string, password = ''): string =>
    at((url) => {
      url.username = name
      url.password = password
    })

  test.each<[what: string, url: () => string | Promise<string>, code: string, reason: string, message: RegExp]>([
    ['a wrong password', () => user('ann', 'wrong'), 'STORE_UNAVAILABLE', 'wrong-password', /"ann" \(28P01\)$/],
    ['no password where one is needed', () => user('ann'), 'STORE_UNAVAILABLE', 'wrong-password', /password/],
    ['an unknown role', () => user('bob'), 'STORE_UNAVAILABLE', 'not-allowed', /role "bob" does not exist/],
    ['a role that is rejected', () => user('carl'), 'STORE_UNAVAILABLE', 'not-allowed', /rejects connection/],
    [
      'an unknown database',
      () =>
        at((url) => {
          url.pathname = '/nowhere'
        }),
      'STORE_NOT_FOUND',
      'no-database',
      /database "nowhere" does not exist/,
    ],
    [
      'TLS where the server has none',
      () => at((url) => url.searchParams.set('sslmode', 'require')),
      'STORE_UNAVAILABLE',
      'tls',
      /does not support SSL/,
    ],
    [
      'a port where nobody listens',
      async () => {
        const port = await freePort()
        return at((url) => {
          url.port = String(port)
        })
      },
      'STORE_UNAVAILABLE',
      'refused',
      /ECONNREFUSED/,
    ],
  ])('%s', async (_, url, code, reason, message) => {
    const address = await url()
    const error = await refusal(address)
    expect(error).toMatchObject({ code, details: { reason } })
    expect(error.message).toMatch(message)
    const { username, host, pathname } = new URL(address)
    expect(error.message).toContain(`//${username}@${host}${pathname}`)
    expect(error.message).not.toContain('wrong@')
    expect(error.fix).toBe(error.details['advice'])
  })

  test('a server without TLS is not answered with the advice to ask for TLS', async () => {
    const error = await refusal(await at((url) => url.searchParams.set('sslmode', 'require')))
    expect(error.fix).toBe('This server has no TLS: remove sslmode from the address, or write sslmode=disable.')
  })

  test('a role with no connection left, and a server that shuts down, say so', async () => {
    await runSql(server.url, 'create role dora login connection limit 0')
    expect(await refusal(user('dora'))).toMatchObject({ details: { reason: 'too-many-connections' } })
    const open = new Client(server.url)
    await open.connect()
    // A smart shutdown waits for this session, and lets nobody in meanwhile.
    process.kill(server.pid, 'SIGTERM')
    await expect.poll(async () => (await refusal(server.url)).details['reason']).toBe('not-ready')
    await open.end()
  })
})
