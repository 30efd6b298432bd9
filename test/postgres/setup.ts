/** What the tests of PostgreSQL begin with: the server, or the reason why there is none, and a schema of their own. */
import { randomBytes } from 'node:crypto'
import { describe, onTestFinished, type TestContext, test } from 'vitest'
import { type Client, type ConnectOptions, connect, silentLogger } from '../../src/index.ts'
import { serversOf } from '../servers/ask.ts'
import { freshSchema, runSql } from '../servers/schemas.ts'

const [server] = (await serversOf('postgres'))!

/** A group of tests that are skipped by name, with the reason, where there is no server. */
export const onPostgres = (what: string, tests: (url: string) => void): void => {
  if ('missing' in server!)
    test(what, (context) => context.skip(`${server.name} could not be started: ${server.missing}`))
  else describe(what, () => tests(server!.url))
}

type Options = ConnectOptions & { readonly through?: string }

export interface Bench {
  readonly schema: string
  /** A client of this schema, as another process would have it. */
  connect(options?: Options): Promise<Client>
  sql(...statements: string[]): Promise<Record<string, unknown>[]>
}

/** A schema that is gone when the test is over, and the clients that were opened on it. Tests that run side by side say which they are. */
export const begin = (url: string, own: Pick<TestContext, 'onTestFinished'> = { onTestFinished }): Bench => {
  const schema = freshSchema()
  const clients: Client[] = []
  own.onTestFinished(async () => {
    for (const client of clients) await client.close().catch(() => {})
    await runSql(url, `drop schema if exists ${schema} cascade`)
  })
  return {
    schema,
    sql: (...statements) => runSql(url, ...statements),
    async connect({ through = url, postgres, ...options } = {}) {
      const client = await connect(through, {
        create: true,
        logger: silentLogger,
        name: 'test',
        ...options,
        postgres: { schema, ...postgres },
      })
      clients.push(client)
      return client
    },
  }
}

/** A database that is gone when the test is over. Tests that run side by side say which they are. */
export const freshDatabase = async (
  url: string,
  own: Pick<TestContext, 'onTestFinished'> = { onTestFinished },
): Promise<string> => {
  const name = `holdfast_test_${randomBytes(6).toString('hex')}`
  await runSql(url, `create database ${name}`)
  own.onTestFinished(async () => void (await runSql(url, `drop database ${name} with (force)`)))
  const made = new URL(url)
  made.pathname = `/${name}`
  return made.href
}

/** Resolves with how long it took, in milliseconds. */
export const timed = async (promise: Promise<unknown>): Promise<number> => {
  const begun = performance.now()
  await promise
  return performance.now() - begun
}
