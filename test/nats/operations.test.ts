/** What a task costs, counted at the server: writes by its streams, reads by the requests that it gets. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { expect, onTestFinished, test } from 'vitest'
import type { Client } from '../../src/index.ts'
import { report } from '../crash/seed.ts'
import { begin, onNats } from './setup.ts'

const TASKS = 200

const counter = async (url: string, bucket: string) => {
  const nc = await connectNats({ servers: url })
  onTestFinished(() => nc.close())
  const jsm = await jetstreamManager(nc)
  let reads = 0
  nc.subscribe(`$JS.API.STREAM.MSG.GET.KV_${bucket}`, { callback: () => void reads++ })
  await nc.flush()
  const streams = [`KV_${bucket}`, `HOLDFAST_${bucket}_READY`, `HOLDFAST_${bucket}_LATER`]
  return async () => {
    const infos = await Promise.all(streams.map((name) => jsm.streams.info(name)))
    await nc.flush()
    return {
      reads,
      writes: infos.reduce((sum, { state }) => sum + state.last_seq, 0),
      left: infos[1]!.state.messages,
      forLater: infos[2]!.state.messages,
    }
  }
}

const run = (client: Client): Promise<unknown> =>
  client
    .worker({ concurrency: 50 })
    .handle('work', () => null)
    .drain()

/** The cost of each task. The worker has not seen the tasks before. The work type, which is written once, is known to both. */
const costOfTasks = async (url: string, bucket: string, [producer, consumer]: readonly [Client, Client]) => {
  await producer.submit('work', null)
  await run(consumer)
  const count = await counter(url, bucket)
  const before = await count()
  await producer.submitMany(Array.from({ length: TASKS }, () => ({ type: 'work', input: null })))
  await run(consumer)
  const after = await count()
  return {
    writes: (after.writes - before.writes) / TASKS,
    reads: (after.reads - before.reads) / TASKS,
    left: after.left,
  }
}

/** A few more for registrations, queues and pauses. */
const [MOST_WRITES, MOST_READS] = [4.2, 2.2]

onNats('on the happy path', (url) => {
  test('a task costs at most four writes and two reads, and leaves no message behind', async () => {
    const { bucket, connect } = begin(url)
    const { writes, reads, left } = await costOfTasks(url, bucket, [await connect(), await connect()])
    report(`operations per task: ${writes.toFixed(2)} writes, ${reads.toFixed(2)} reads`)
    expect(writes).toBeLessThan(MOST_WRITES)
    expect(reads).toBeLessThan(MOST_READS)
    expect(left).toBe(0)
  })

  test('five thousand tasks of the far future add nothing to what a task costs', async () => {
    const { bucket, connect } = begin(url)
    const client = await connect()
    await client.submitMany(
      Array.from({ length: 5_000 }, (_, i) => ({ type: 'work', input: null, delay: { hours: 1, minutes: i } })),
    )
    const { writes, reads, left } = await costOfTasks(url, bucket, [client, await connect()])
    expect(writes).toBeLessThan(MOST_WRITES)
    expect(reads).toBeLessThan(MOST_READS)
    // A message that arrives before its task stays with a process, which reports progress every half second.
    expect(left).toBe(0)
  })

  test('a task whose time has come leaves its minute when it is announced, though nobody runs it yet', async () => {
    const { bucket, connect } = begin(url)
    const client = await connect()
    const count = await counter(url, bucket)
    const { id } = await client.submit('work', null, { delay: '300ms' })
    expect(await count()).toMatchObject({ left: 0, forLater: 1 })
    const worker = client.worker().handle('other', () => null)
    worker.start()
    await expect.poll(count, { timeout: 20_000 }).toMatchObject({ left: 1, forLater: 0 })
    expect((await client.get(id)).status).toBe('pending')
    await worker.stop()
  })
})
