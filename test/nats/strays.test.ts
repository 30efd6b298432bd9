/** Bells that a killed server has forgotten: it would never hand them out again, and still nothing is lost. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../crash/processes.ts'
import { serversOf } from '../servers/ask.ts'
import { begin, onNats } from './setup.ts'

const [server] = (await serversOf('nats'))!

/** As after kill -9 of the server at the wrong moment: what was handed out counts as acknowledged, and is still in the stream. */
const forget = async (url: string, bucket: string): Promise<void> => {
  const nc = await connectNats({ servers: url })
  onTestFinished(() => nc.close())
  const jsm = await jetstreamManager(nc)
  const stream = `HOLDFAST_${bucket}_BELLS`
  const { last_seq } = (await jsm.streams.info(stream)).state
  for await (const { name } of jsm.consumers.list(stream)) await jsm.consumers.reset(stream, name, last_seq + 1)
}

onNats('a bell that the server has forgotten', (url) => {
  const isNew = 'name' in server! && Number(/2\.(\d+)/.exec(server.name)?.[1] ?? 0) >= 15

  test('is found: the task of a dead process runs when its lease has lapsed', async (context) => {
    if (!isNew) return context.skip('only nats-server 2.15 and later can be made to forget')
    const { bucket, connect } = begin(url)
    const dead = await connect()
    const { id } = await dead.submit('work', null)
    expect(await dead.claimNext({ workerId: 'dead', leaseTtl: '1s' })).not.toBeNull()
    await dead.close()
    await forget(url, bucket)
    const client = await connect()
    const worker = client.worker({ leaseTtl: '1s' }).handle('work', () => 'done')
    void worker.run()
    await until('it has run', async () => (await client.get(id)).status === 'completed', 30_000, 100)
    await worker.stop()
  })

  test('is rung again: a task that waits is not forgotten with it', async (context) => {
    if (!isNew) return context.skip('only nats-server 2.15 and later can be made to forget')
    const { bucket, connect } = begin(url)
    const client = await connect()
    await client.submit('work', null)
    // So that the server has a consumer that can forget.
    const first = client.worker().handle('work', () => 'done')
    await first.drain()
    const { id } = await client.submit('work', null)
    await forget(url, bucket)
    const worker = client.worker().handle('work', () => 'done')
    void worker.run()
    await until('it has run', async () => (await client.get(id)).status === 'completed', 30_000, 100)
    await worker.stop()
  })
})
