/** Delayed tasks that several workers claim at once: each is found once, and no claim fails. */
import { type ConsumerAPI, jetstreamManager } from '@nats-io/jetstream'
import { connect as connectToServer } from '@nats-io/transport-node'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Logger, silentLogger } from '../../src/index.ts'
import { LaterHints } from '../../src/store/nats/messages/later-hints.ts'
import { until } from '../crash/processes.ts'
import { begin, onNats } from './setup.ts'

onNats('tasks that are put to sleep again and again', (url) => {
  test('by four workers leave no look unanswered: a hint that another one removed is not an error', async () => {
    const { connect } = begin(url)
    const warnings: string[] = []
    const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
    const clients = await Promise.all(Array.from({ length: 4 }, () => connect({ logger })))
    let runs = 0
    for (const client of clients)
      client
        .worker({ concurrency: 5 })
        .handle('nap', (_, ctx) => {
          runs++
          return ctx.reschedule('150ms')
        })
        .start()
    const results = await clients[0]!.submitMany(Array.from({ length: 20 }, (_, n) => ({ type: 'nap', input: n })))
    expect(results.every(({ ok }) => ok)).toBe(true)
    await until('they have slept some hundred times', async () => runs > 400)
    expect(warnings.filter((warning) => warning.startsWith('cannot look for work'))).toEqual([])
  })
})

onNats('a reader of delayed tasks that the server has already removed', (url) => {
  test('is no error: what it has read is run', async () => {
    const nc = await connectToServer({ servers: new URL(url).host })
    onTestFinished(() => nc.close())
    const consumers = Object.getPrototypeOf((await jetstreamManager(nc)).consumers) as ConsumerAPI
    const refused = Object.assign(new Error('consumer not found'), { code: 10_014, status: 404 })
    const removal = vi.spyOn(consumers, 'delete').mockRejectedValue(refused)
    onTestFinished(() => removal.mockRestore())
    const { connect } = begin(url)
    const warnings: string[] = []
    const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
    const [client, consumer] = [await connect(), await connect({ logger })]
    const task = await client.submit('nap', 1, { delay: '200ms' })
    const worker = consumer.worker().handle('nap', async () => 'ran')
    worker.start()
    expect(await client.wait(task, { timeout: '20s' })).toBe('ran')
    await worker.stop()
    expect(removal).toHaveBeenCalled()
    expect(warnings.filter((warning) => warning.startsWith('cannot look for work'))).toEqual([])
  })
})

onNats('a reader of delayed tasks that is gone before it has reported how much it delivered', (url) => {
  test('is no loss of contact: they are read again, and each is run once', async () => {
    const nc = await connectToServer({ servers: new URL(url).host })
    onTestFinished(() => nc.close())
    const consumers = Object.getPrototypeOf((await jetstreamManager(nc)).consumers) as ConsumerAPI
    const refused = Object.assign(new Error('consumer not found'), { code: 10_014, status: 404 })
    const { connect } = begin(url)
    const warnings: string[] = []
    const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
    const [client, consumer] = [await connect(), await connect({ logger })]
    await client.submitMany(Array.from({ length: 20 }, (_, n) => ({ type: 'nap', input: n, delay: '200ms' })))
    const info = vi.spyOn(consumers, 'info').mockRejectedValueOnce(refused)
    onTestFinished(() => info.mockRestore())
    const ran: unknown[] = []
    const worker = consumer.worker({ concurrency: 20 }).handle('nap', (input) => void ran.push(input))
    worker.start()
    await until('all have run', () => ran.length >= 20)
    await worker.stop()
    expect(ran.toSorted((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 20 }, (_, n) => n))
    expect(info).toHaveBeenCalled()
    expect(warnings.filter((warning) => warning.startsWith('cannot look for work'))).toEqual([])
  })
})

onNats('a part of a look that the server refuses', (url) => {
  test('does not stop the others: what else is due is run, and a lapsed lease is taken', async () => {
    const remove = LaterHints.prototype.remove
    const refused = vi.spyOn(LaterHints.prototype, 'remove').mockImplementation(function (this: LaterHints, later) {
      if (!later.hint.includes('~refused~')) return remove.call(this, later)
      return Promise.reject(Object.assign(new Error('not that one'), { code: 10_999, status: 400 }))
    })
    onTestFinished(() => refused.mockRestore())
    const { connect } = begin(url)
    const [client, dead] = [await connect(), await connect()]
    const { id } = await dead.submit('work', 'held')
    expect(await dead.claimNext({ workerId: 'dead', leaseTtl: '1s' })).not.toBeNull()
    await dead.close()
    const ran: unknown[] = []
    const worker = client.worker({ leaseTtl: '1s' })
    for (const type of ['work', 'refused']) worker.handle(type, (input) => void ran.push(input))
    worker.start()
    await client.submit('refused', 'refused', { delay: '100ms' })
    await until('the refused one has run, for it was announced before', () => ran.includes('refused'))
    await client.submitMany(Array.from({ length: 5 }, (_, n) => ({ type: 'work', input: n, delay: '200ms' })))
    await until('the others have run', () => [0, 1, 2, 3, 4].every((n) => ran.includes(n)))
    await until('the lease was taken', async () => (await client.get(id)).status === 'completed', 20_000)
    expect(refused).toHaveBeenCalled()
    await worker.stop()
  })
})
