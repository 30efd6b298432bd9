/** Schedules where time is the server's: several schedulers, one task a slot, none before its instant. */
import { expect, test } from 'vitest'
import { begin, onPostgres } from './setup.ts'

onPostgres('[M05] schedules on PostgreSQL', (url) => {
  test('fire once a slot, and never before it by the clock of the server', async () => {
    const bench = begin(url)
    const client = await bench.connect()
    const started = Promise.withResolvers<void>()
    let runs = 0
    for (let n = 0; n < 3; n++) {
      const other = await bench.connect()
      other
        .worker({ concurrency: 5 })
        .handle('tick', () => {
          if (++runs === 20) started.resolve()
        })
        .start()
    }
    const { createdAt } = await client.schedules.create({
      id: 'tick',
      type: 'tick',
      input: null,
      every: '100ms',
      overlap: 'allow',
    })
    await started.promise
    await client.schedules.delete('tick')
    const { tasks } = await client.list({ limit: 1_000 })
    const slots = tasks.map(({ idempotencyKey }) => Date.parse(idempotencyKey!.slice(-24))).sort((a, b) => a - b)
    // On a busy machine slots are missed, and only the newest of them fires: never one twice, never one off the grid.
    expect(new Set(slots).size).toBe(slots.length)
    expect(slots.filter((slot) => slot <= createdAt || (slot - createdAt) % 100 !== 0)).toEqual([])
    for (const { idempotencyKey, createdAt: at } of tasks)
      expect(at).toBeGreaterThanOrEqual(Date.parse(idempotencyKey!.slice(-24)))
  })
})
