/** kill -9 of the gateway, of the disk and of everything, in the middle of work: what was accepted is done in the end. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../../src/index.ts'
import { until } from '../../crash/processes.ts'
import { report } from '../../crash/seed.ts'
import { makeBucket, type S3Server, s3Target, startS3 } from '../../servers/s3.ts'
import { addressOf, credentialsOf, freshPrefix } from '../setup.ts'
import { onS3 } from './setup.ts'

const outages: Readonly<Record<string, (server: S3Server) => Promise<void>>> = {
  'the gateway': async (server) => {
    await server.killGateway()
    await server.startGateway()
  },
  'the disk': async (server) => {
    await server.killDisk()
    await server.startDisk()
  },
  everything: async (server) => {
    await server.crash()
    await server.restart()
  },
}

onS3('a server that is killed and comes back', () => {
  test('loses nothing that it had accepted, and workers go on by themselves', { timeout: 240_000 }, async () => {
    const server = await startS3()
    onTestFinished(() => server.remove())
    const target = s3Target(server.url)
    await makeBucket(target)
    const client = await connect(addressOf(target, freshPrefix()), {
      create: true,
      logger: silentLogger,
      s3: { credentials: credentialsOf(target), requestTimeout: '3s' },
    })
    onTestFinished(() => client.close())
    const runs = new Map<unknown, number>()
    const worker = client.worker({ concurrency: 8, leaseTtl: '15s' }).handle('work', async (n) => {
      runs.set(n, (runs.get(n) ?? 0) + 1)
    })
    worker.start()
    const accepted: string[] = []
    let isOver = false
    let refused = 0
    let n = 0
    const producer = async (): Promise<void> => {
      while (!isOver) {
        await client.submit('work', ++n, { maxRetries: null, idempotencyKey: `n-${n}` }).then(
          ({ id }) => accepted.push(id),
          () => refused++,
        )
      }
    }
    const submitting = Promise.all(Array.from({ length: 8 }, producer))
    for (const [what, outage] of Object.entries(outages)) {
      const before = accepted.length
      await until(`tasks are accepted before ${what} is killed`, () => accepted.length > before + 10)
      await outage(server)
      const at = accepted.length
      await until(`tasks are accepted after ${what} was killed`, () => accepted.length > at + 10)
    }
    isOver = true
    await submitting
    await until(
      'every task has ended',
      async () => (await client.count({ status: ['pending', 'running'] }, { cap: 1 })).count === 0,
    )
    await worker.stop()
    const statuses = await Promise.all(accepted.map(async (id) => (await client.get(id))?.status ?? 'lost'))
    report(`s3 restart: ${accepted.length} accepted, ${refused} refused, ${runs.size} run, over 3 outages`)
    expect(statuses.filter((status) => status !== 'completed')).toEqual([])
    expect((await client.count({})).count).toBeGreaterThanOrEqual(accepted.length)
    expect(new Set(accepted).size).toBe(accepted.length)
  })
})
