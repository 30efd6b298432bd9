/** What idle workers ask of the server, counted by the server. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { pause } from '../crash/processes.ts'
import { report } from '../crash/seed.ts'
import { startNats } from '../servers/nats.ts'
import { onNats } from './setup.ts'

const TYPES = Array.from({ length: 10 }, (_, n) => `type-${n}`)
const QUEUES = Array.from({ length: 5 }, (_, n) => `queue-${n}`)
const PRIORITIES = [0, 5]
/** The requests of the start are over by then. */
const SETTLED = 5_000
/** As long as a request waits at the server. */
const COUNTED = 30_000

const read = async <T>(address: string): Promise<T> => (await (await fetch(address)).json()) as T

onNats('an idle worker', () => {
  test('of five queues, ten types and two priorities costs fewer than 300 messages a minute, and a consumer for each queue and priority', async () => {
    const server = await startNats()
    onTestFinished(() => server.remove())
    await using client = await connect(`${server.url}/idle`, { create: true, logger: silentLogger })
    for (const queue of QUEUES)
      for (const priority of PRIORITIES)
        await client.submitMany(TYPES.map((type) => ({ type, input: null, queue, priority })))
    const worker = client.worker({ queues: QUEUES })
    let ran = 0
    for (const type of TYPES) worker.handle(type, () => void ran++)
    worker.start()
    await pause(SETTLED)
    expect(ran).toBe(TYPES.length * QUEUES.length * PRIORITIES.length)
    const messages = async (): Promise<number> => {
      const { in_msgs, out_msgs } = await read<{ in_msgs: number; out_msgs: number }>(`${server.monitor}/varz`)
      return in_msgs + out_msgs
    }
    const before = await messages()
    await pause(COUNTED)
    const aMinute = (((await messages()) - before) * 60_000) / COUNTED
    const { consumers } = await read<{ consumers: number }>(`${server.monitor}/jsz`)
    report(`nats: an idle worker of 100 work types: ${aMinute.toFixed(0)} messages a minute, ${consumers} consumers`)
    expect(aMinute).toBeLessThan(300)
    expect(consumers).toBe(QUEUES.length * PRIORITIES.length)
    await worker.stop()
  })
})
