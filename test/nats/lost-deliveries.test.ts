/** Deliveries that a killed server has forgotten: it would never repeat them, and still no task is lost. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { afterAll, expect, type TestContext, test, vi } from 'vitest'
import type { Client } from '../../src/index.ts'
import { LostDeliveries } from '../../src/store/nats/messages/lost-deliveries.ts'
import { until } from '../crash/processes.ts'
import { serversOf } from '../servers/ask.ts'
import { type Bench, begin, onNats } from './setup.ts'

const [server] = (await serversOf('nats'))!
const isNew = 'name' in server! && Number(/2\.(\d+)/.exec(server.name)?.[1] ?? 0) >= 15

/**
 * As after kill -9 of the server at the wrong moment: delivered messages count as acknowledged, and are still in the stream.
 */
const forget = async (url: string, bucket: string): Promise<void> => {
  const nc = await connectNats({ servers: url })
  try {
    const jsm = await jetstreamManager(nc)
    const stream = `HOLDFAST_${bucket}_READY`
    const { last_seq } = (await jsm.streams.info(stream)).state
    for await (const { name } of jsm.consumers.list(stream)) await jsm.consumers.reset(stream, name, last_seq + 1)
  } finally {
    await nc.close()
  }
}

interface Scene {
  readonly client: Client
  readonly id: string
}
type Play = (url: string, bench: Bench, type: string) => Promise<Scene>

/** A process dies with a task. */
const died: Play = async (url, { bucket, connect }, type) => {
  const dead = await connect()
  const { id } = await dead.submit(type, null)
  expect(await dead.claimNext({ workerId: 'dead', leaseTtl: '1s' })).not.toBeNull()
  await dead.close()
  await forget(url, bucket)
  return { client: await connect(), id }
}

/** A task waits that no process has held. */
const waits: Play = async (url, { bucket, connect }, type) => {
  const client = await connect()
  await client.submit(type, null)
  // So that the server has a consumer that can forget.
  const first = client.worker().handle(type, () => 'done')
  await first.drain()
  const { id } = await client.submit(type, null)
  await forget(url, bucket)
  return { client, id }
}

/** Tasks of this type whose lost messages were found but not returned: the planted bug. */
const UNTOLD = 'untold'
const untold: string[] = []
const find = LostDeliveries.prototype.find
const planted = vi.spyOn(LostDeliveries.prototype, 'find').mockImplementation(function (this: LostDeliveries, type) {
  const found = find.call(this, type)
  const isUntold = (hint: string): boolean => hint.includes(`~${UNTOLD}~`)
  untold.push(...found.filter(isUntold))
  return found.filter((hint) => !isUntold(hint))
})
afterAll(() => planted.mockRestore())

onNats('a delivery that the server has forgotten', (url) => {
  const play = async (context: TestContext, scene: Play, type: string, isOver: (scene: Scene) => Promise<boolean>) => {
    if (!isNew) return context.skip('only nats-server 2.15 and later can be made to forget')
    const played = await scene(url, begin(url, context), type)
    const worker = played.client.worker({ leaseTtl: '1s' }).handle(type, () => 'done')
    worker.start()
    await until('it is over', () => isOver(played), 30_000, 100)
    await worker.stop()
    return (await played.client.get(played.id)).status
  }
  const hasRun = async ({ client, id }: Scene): Promise<boolean> => (await client.get(id)).status === 'completed'
  /** Three times: what is found twice is read and then announced. */
  const wasFound = async ({ id }: Scene): Promise<boolean> => untold.filter((hint) => hint.includes(id)).length >= 3

  test.concurrent('is found: the task of a dead process runs when its lease has lapsed', async (context) => {
    expect(await play(context, died, 'work', hasRun)).toBe('completed')
  })

  test.concurrent('is announced again: a task that waits is not forgotten with it', async (context) => {
    expect(await play(context, waits, 'work', hasRun)).toBe('completed')
  })

  test.concurrent('is found by this alone: untold, the task of a dead process stays with it', async (context) => {
    expect(await play(context, died, UNTOLD, wasFound)).toBe('running')
  })

  test.concurrent('is announced again by this alone: untold, a task that waits goes on waiting', async (context) => {
    expect(await play(context, waits, UNTOLD, wasFound)).toBe('pending')
  })
})
