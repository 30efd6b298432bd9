/** Charts count every move once, at the time when it happened, whatever processes do. */
import { describe, expect, test } from 'vitest'
import { type ChartCount, type ChartReading, type Client, PermanentError } from '../../../src/index.ts'
import { begin } from '../setup.ts'

const MINUTE = 60_000

const sumOf = ({ points }: ChartReading, name: ChartCount): number =>
  points.reduce((sum, { counts }) => sum + counts[name], 0)

const drain = (client: Client): Promise<unknown> =>
  client
    .worker()
    .handle('mail', () => null)
    .handle('charge', () => {
      throw new PermanentError('declined')
    })
    .drain()

describe('charts', () => {
  test('count by queue and type, at the time of the move', async () => {
    const { client, clock, passing } = await begin()
    await client.submitMany([1, 2, 3].map((input) => ({ type: 'mail', input })))
    await client.submit('mail', 4, { queue: 'later' })
    await client.submit('charge', 5)
    await clock.advance(20_000)
    await passing(drain(client))
    const charts = client.charts()
    const all = await passing(charts.read({ range: '5m' }))
    expect([sumOf(all, 'submitted'), sumOf(all, 'completed'), sumOf(all, 'died')]).toEqual([5, 3, 1])
    const submitted = all.points.find(({ counts }) => counts.submitted > 0)!
    const completed = all.points.find(({ counts }) => counts.completed > 0)!
    expect(completed.at - submitted.at).toBeGreaterThanOrEqual(15_000)
    // They waited for 20 s; durations are kept to a tenth.
    expect(completed.wait!.p50).toBeGreaterThan(18_000)
    expect(completed.wait!.p50).toBeLessThan(23_000)
    expect(all.queues['later']!.counts).toMatchObject({ submitted: 1, completed: 0 })
    expect(all.types['charge']!.counts).toMatchObject({ submitted: 1, died: 1 })
    const mail = await passing(charts.read({ range: '5m', type: 'mail', queue: 'default' }))
    expect(sumOf(mail, 'submitted')).toBe(3)
  })

  test('are not lost by a restart and not doubled by a second process', async () => {
    const { client, clock, another, passing } = await begin()
    const other = await another()
    const first = client.charts().start()
    other.charts().start()
    for (let minute = 0; minute < 10; minute++) {
      await passing(client.submit('mail', minute))
      await clock.advance(MINUTE / 2)
      await passing(drain(client))
      await clock.advance(MINUTE / 2)
    }
    first.stop()
    for (let minute = 0; minute < 3; minute++) {
      await passing(client.submit('mail', minute))
      await clock.advance(MINUTE)
    }
    const again = (await another()).charts().start()
    await clock.advance(2 * MINUTE)
    for (const range of ['1h', '24h', '7d'] as const) {
      const read = await passing(again.read({ range }))
      expect([range, sumOf(read, 'submitted'), sumOf(read, 'completed')]).toEqual([range, 13, 10])
    }
  })

  test('have a gap, not zeros, where nobody counted', async () => {
    const { client, clock, another, passing } = await begin()
    const first = client.charts().start()
    await passing(client.submit('mail', 1))
    await clock.advance(3 * MINUTE)
    first.stop()
    await clock.advance(25 * MINUTE)
    const again = (await another()).charts().start()
    await clock.advance(2 * MINUTE)
    const { points } = await passing(again.read({ range: '1h' }))
    const gaps = points.slice(1).map(({ at }, i) => at - points[i]!.at)
    expect(gaps.filter((gap) => gap > MINUTE)).toHaveLength(1)
    expect(Math.max(...gaps)).toBeGreaterThan(15 * MINUTE)
  })

  test('keep a bounded number of documents, also after days', async () => {
    const { client, clock, store, passing } = await begin()
    const charts = client.charts().start()
    await clock.advance(5 * MINUTE)
    charts.stop()
    await clock.advance(20 * 24 * 60 * MINUTE)
    client.charts().start()
    await clock.advance(2 * MINUTE)
    const names = (await passing(store.documents.list('chart/'))).map(({ name }) => name)
    expect(names.length).toBeGreaterThan(0)
    for (const name of names)
      expect(Date.parse(name.split('/')[2]!), name).toBeGreaterThan(clock.wall() - 25 * 60 * MINUTE)
  })

  test('tell what each worker has ended in the last five minutes, also one whose lease was lost', async () => {
    const { client, clock, passing } = await begin()
    await client.submitMany([1, 2, 3].map((input) => ({ type: 'mail', input })))
    await client.submitMany([4, 5].map((input) => ({ type: 'charge', input, maxRetries: 0 })))
    const gone = await client.submit('slow', 6)
    await client.claim(gone.id, { workerId: 'gone-1', leaseTtl: '10s' })
    const worker = client
      .worker({ id: 'mail-1' })
      .handle('mail', () => null)
      .handle('charge', () => {
        throw new PermanentError('declined')
      })
    const running = worker.run()
    await clock.advance(MINUTE)
    const charts = client.charts()
    const read = await passing(charts.workers())
    expect(read.seconds).toBe(300)
    expect(Object.fromEntries(read.byWorker)).toEqual({
      'mail-1': { completed: 3, failed: 2 },
      'gone-1': { completed: 0, failed: 1 },
    })
    await clock.advance(6 * MINUTE)
    expect((await passing(charts.workers())).byWorker.size).toBe(0)
    await passing(worker.stop())
    await running
  })

  test('refuse a range that does not exist', async () => {
    const { client } = await begin()
    await expect(client.charts().read({ range: '2h' as '1h' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})
