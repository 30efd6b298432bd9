/** What the tests of NATS begin with: the server, or the reason why there is none, and a bucket of their own. */
import { describe, onTestFinished, type TestContext, test } from 'vitest'
import { type Client, type ConnectOptions, connect, silentLogger } from '../../src/index.ts'
import { serversOf } from '../servers/ask.ts'
import { freshBucket, removeBucket } from '../servers/buckets.ts'

const [server] = (await serversOf('nats'))!

/** A group of tests that are skipped by name, with the reason, where there is no server. */
export const onNats = (what: string, tests: (url: string) => void): void => {
  if ('missing' in server!)
    test(what, (context) => context.skip(`${server.name} could not be started: ${server.missing}`))
  else describe(what, () => tests(server!.url))
}

export interface Bench {
  readonly bucket: string
  /** With the bucket. */
  readonly address: string
  /** A client of this bucket, as another process would have it. */
  connect(options?: ConnectOptions): Promise<Client>
}

/** A bucket that is gone when the test is over, and the clients that were opened on it. Tests that run side by side say which they are. */
export const begin = (url: string, own: Pick<TestContext, 'onTestFinished'> = { onTestFinished }): Bench => {
  const bucket = freshBucket()
  const address = `${url}/${bucket}`
  const clients: Client[] = []
  own.onTestFinished(async () => {
    for (const client of clients) await client.close().catch(() => {})
    await removeBucket(url, bucket)
  })
  return {
    bucket,
    address,
    async connect(options = {}) {
      const client = await connect(address, { create: true, logger: silentLogger, name: 'test', ...options })
      clients.push(client)
      return client
    },
  }
}
