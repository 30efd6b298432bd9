/**
 * Checks before a bucket is used: settings that would lose tasks are refused, weak ones are named, another store is noticed.
 */
import { jetstreamManager, type StreamConfig } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Client, connect, isHoldfastError, silentLogger } from '../../src/index.ts'
import { NatsStore, openNats } from '../../src/store/nats/store.ts'
import { until } from '../crash/processes.ts'
import { freshBucket, removeBucket } from '../servers/buckets.ts'
import { startNats } from '../servers/nats.ts'
import { begin, onNats } from './setup.ts'

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    (error: unknown) => (isHoldfastError(error) ? error.code : `not ours: ${String(error)}`),
  )

const manager = async (url: string) => {
  const nc = await connectNats({ servers: url })
  onTestFinished(() => nc.close())
  return jetstreamManager(nc)
}

describe('an address', () => {
  test.each([
    ['nats://localhost:4222', 'names no bucket'],
    ['nats://localhost:4222/a.b', 'names no bucket'],
    ['nats://user:secret@localhost:4222/jobs?replicas=9', 'asks for 9 replicas'],
  ])('%s is refused: it %s', async (address, why) => {
    const refused = openNats(address)
    await expect(refused).rejects.toThrow(why)
    await expect(refused).rejects.not.toThrow('secret')
  })

  test('where no server listens is unavailable at once', async () => {
    expect(await codeOf(openNats('nats://127.0.0.1:1/jobs'))).toBe('STORE_UNAVAILABLE')
  })
})

onNats('a bucket', (url) => {
  test('that is not there is not made unless asked for', async () => {
    expect(await codeOf(openNats(`${url}/${freshBucket()}`))).toBe('STORE_NOT_FOUND')
  })

  test.each<[what: string, config: Partial<StreamConfig>, why: string]>([
    ['a TTL', { max_age: 3_600_000_000_000 }, 'has a TTL'],
    ['discard=old', { discard: 'old' }, 'has discard=old'],
    ['memory storage', { storage: 'memory' }, 'keeps its data in memory'],
    ['direct reads', { allow_direct: true }, 'has allow_direct'],
  ])('with %s is refused', async (_, config, why) => {
    const bucket = freshBucket()
    const jsm = await manager(url)
    onTestFinished(() => removeBucket(url, bucket))
    const name = `KV_${bucket}`
    await jsm.streams.add({ name, subjects: [`$KV.${bucket}.>`], discard: 'new', max_msgs_per_subject: 1, ...config })
    const opening = openNats(`${url}/${bucket}`, { create: true })
    await expect(opening).rejects.toThrow(why)
    expect(await codeOf(opening)).toBe('INVALID_OPTION')
  })

  test('whose ready messages are gone is refused, not used as if there were nothing to do', async () => {
    const { bucket, address, connect } = begin(url)
    const client = await connect()
    await client.submit('a', null)
    await client.close()
    await (await manager(url)).streams.delete(`HOLDFAST_${bucket}_READY`)
    expect(await codeOf(openNats(address))).toBe('STORE_CORRUPT')
  })

  test('that is replaced under a living client stops it', async () => {
    const { bucket, connect } = begin(url)
    const client = await connect()
    await client.submit('a', null)
    await removeBucket(url, bucket)
    await connect()
    await until(
      'the old client notices',
      async () => (await codeOf(client.submit('a', null))) === 'STORE_IDENTITY_CHANGED',
      10_000,
      100,
    )
  })

  test('of one replica is weak, and connect says so', async () => {
    const warnings: string[] = []
    const { connect } = begin(url)
    await connect({ logger: { ...silentLogger, warn: (message) => void warnings.push(message) } })
    expect(warnings.join()).toContain('durability is weak (one replica')
  })

  test('rings for the workers of another client', async () => {
    const bench = begin(url)
    const producer = await bench.connect()
    const store = await openNats(bench.address)
    const lookedInVain = Promise.withResolvers<void>()
    const { claim } = NatsStore.prototype
    store.claim = async (want) => {
      const look = await claim.call(store, want)
      if (look.leased.length === 0) lookedInVain.resolve()
      return look
    }
    const consumer = await connect(store, { logger: silentLogger })
    onTestFinished(() => consumer.close())
    const ran = Promise.withResolvers<number>()
    const worker = consumer.worker({ pollInterval: '10s' }).handle('a', () => ran.resolve(performance.now()))
    worker.start()
    await lookedInVain.promise
    const before = performance.now()
    await producer.submit('a', null)
    expect((await ran.promise) - before).toBeLessThan(1_000)
    await worker.stop()
  })
})

onNats('a server of its own', () => {
  test('with sync_interval: always is strong, and doctor finds it so', async () => {
    const server = await startNats({ syncAlways: true })
    onTestFinished(() => server.remove())
    const warnings: string[] = []
    const store = await openNats(`${server.url}/jobs?monitor=${server.monitor}`, {
      create: true,
      onWarning: (message) => void warnings.push(message),
    })
    onTestFinished(() => store.close())
    expect(warnings).toEqual([])
    expect(await store.examine!()).toContainEqual(expect.objectContaining({ check: 'durability', value: 'strong' }))
  })

  test('tells a user without permission to write at once', async () => {
    const server = await startNats({ hasUsers: true })
    onTestFinished(() => server.remove())
    const open = async (user: string): Promise<Client> => {
      const address = `${server.url}/jobs`.replace('//', `//${user}:${user}@`)
      const client = await connect(address, { create: user === 'writer', logger: silentLogger })
      onTestFinished(() => client.close())
      return client
    }
    const { id } = await (await open('writer')).submit('a', 1)
    const reader = await open('reader')
    expect((await reader.get(id)).input).toBe(1)
    const begun = performance.now()
    expect(await codeOf(reader.cancel(id))).toBe('STORE_READ_ONLY')
    expect(performance.now() - begun).toBeLessThan(1_000)
  })

  test('that takes only small messages refuses a larger task with a typed error, and goes on', async () => {
    const server = await startNats({ maxPayload: 32_768 })
    onTestFinished(() => server.remove())
    const client = await connect(`${server.url}/jobs`, { create: true, logger: silentLogger })
    onTestFinished(() => client.close())
    expect(await codeOf(client.submit('a', 'x'.repeat(40_000)))).toBe('PAYLOAD_TOO_LARGE')
    // Large enough to be stored as a large value, in parts.
    const { id } = await client.submit('a', 'x'.repeat(500_000))
    expect((await client.get(id)).input).toBe('x'.repeat(500_000))
  })
})
