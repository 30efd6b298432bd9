/** Workers that handle different types of one queue: each finds its own, and none is in the way of another. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Requests } from '../../src/store/nats/connection/requests.ts'
import { pause, until } from '../crash/processes.ts'
import { begin, onNats } from './setup.ts'

const consumersOf = async (url: string, bucket: string): Promise<number> => {
  const nc = await connectNats({ servers: url })
  onTestFinished(() => nc.close())
  return (await (await jetstreamManager(nc)).streams.info(`HOLDFAST_${bucket}_READY`)).state.consumer_count
}

const tasks = (type: string, count: number) => Array.from({ length: count }, () => ({ type, input: null }))

onNats('the types of a queue', (url) => {
  test('share a consumer as long as every worker handles all of them', async () => {
    const { bucket, connect } = begin(url)
    const client = await connect()
    const types = Array.from({ length: 10 }, (_, n) => `type-${n}`)
    await client.submitMany(types.flatMap((type) => tasks(type, 10)))
    const worker = client.worker()
    let ran = 0
    for (const type of types) worker.handle(type, () => void ran++)
    await worker.drain()
    expect(ran).toBe(100)
    expect(await consumersOf(url, bucket)).toBe(1)
  })

  test('that a worker does not handle are not in its way, and are left to those who do', async () => {
    const { connect } = begin(url)
    const [producer, mine, other] = [await connect(), await connect(), await connect()]
    await producer.submitMany(tasks('other', 2_000))
    const { id } = await producer.submit('mine', null)
    const worker = mine.worker().handle('mine', () => 'done')
    worker.start()
    await until('mine has run', async () => (await producer.get(id)).status === 'completed')
    expect((await producer.count({ type: 'other', status: 'pending' })).count).toBe(2_000)
    let ran = 0
    await other
      .worker({ concurrency: 50 })
      .handle('other', () => void ran++)
      .drain()
    expect(ran).toBe(2_000)
    await worker.stop()
  })

  test('that only one of two workers handles go to that one, in whatever order they come', async () => {
    const { connect } = begin(url)
    const [producer, one, two] = [await connect(), await connect(), await connect()]
    const wrong: string[] = []
    let ran = 0
    const counted =
      (own: string) =>
      (input: unknown): void => {
        if (input !== own && input !== 'both') wrong.push(`${own} was given ${input}`)
        ran++
      }
    one.worker({ id: 'one' }).handle('one', counted('one')).handle('both', counted('one')).start()
    two.worker({ id: 'two' }).handle('two', counted('two')).handle('both', counted('two')).start()
    for (let n = 0; n < 30; n++)
      await producer.submitMany(['one', 'two', 'both'].map((type) => ({ type, input: type })))
    await until('all have run', () => ran >= 90)
    expect(wrong).toEqual([])
    expect(ran).toBe(90)
  })

  test('are claimed by hand by their names, whatever waits before them', async () => {
    const { connect } = begin(url)
    const client = await connect()
    await client.submitMany(tasks('other', 1_000))
    const { id } = await client.submit('mine', null)
    const lease = await client.claimNext({ workerId: 'me', types: ['mine'] })
    expect(lease?.task.id).toBe(id)
    expect(await client.claimNext({ workerId: 'me', types: ['mine'] })).toBeNull()
    expect((await client.claimNext({ workerId: 'me' }))?.task.type).toBe('other')
  })
})

onNats('a worker that waits', (url) => {
  test('hears of a task of another process, although it would not claim for a minute', async () => {
    const { connect } = begin(url)
    const [producer, consumer] = [await connect(), await connect()]
    const worker = consumer.worker({ pollInterval: '60s', queues: ['one', 'two'] })
    const ran: string[] = []
    worker.handle('work', (input) => void ran.push(String(input))).start()
    // In queues that were never used, then in the same queues once more.
    for (const name of ['a', 'b', 'c', 'd']) {
      await producer.submit('work', name, { queue: name < 'c' ? 'one' : 'two' })
      await until(`${name} has run`, () => ran.includes(name), 10_000)
    }
    await producer.submit('work', 'delayed', { queue: 'one', delay: '500ms' })
    await until('the delayed one has run', () => ran.includes('delayed'), 10_000)
    await worker.stop()
  })

  test('finds a task that is written long after its message arrived', async () => {
    const { connect } = begin(url)
    const [producer, consumer] = [await connect(), await connect()]
    const ran: string[] = []
    const worker = consumer.worker({ pollInterval: '60s' }).handle('work', (input) => void ran.push(String(input)))
    worker.start()
    await producer.submit('work', 'first')
    await until('the first has run', () => ran.includes('first'))
    const write = Requests.prototype.write
    const late = vi.spyOn(Requests.prototype, 'write').mockImplementation(async function (this: Requests, ...args) {
      if (args[0].includes('.tasks.') && args[2]?.last === 0) await pause(300)
      return write.apply(this, args)
    })
    onTestFinished(() => late.mockRestore())
    await producer.submit('work', 'late')
    await until('the late one has run', () => ran.includes('late'), 10_000)
    await worker.stop()
  })

  test('takes what a process claimed that lives on and looks no more', async () => {
    const { connect } = begin(url)
    const [holder, client] = [await connect(), await connect()]
    const { id } = await holder.submit('work', null)
    expect(await holder.claimNext({ workerId: 'holder', leaseTtl: '1s' })).not.toBeNull()
    const worker = client.worker({ leaseTtl: '1s' }).handle('work', () => 'done')
    worker.start()
    await until('it has run', async () => (await client.get(id)).status === 'completed', 25_000)
    await worker.stop()
  })
})
