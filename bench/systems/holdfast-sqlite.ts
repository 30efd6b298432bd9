/** Holdfast on its embedded store, with its defaults. */
import { join } from 'node:path'
import type { Client } from '../../src/index.ts'
import { idleGap, payload, type System, type Timed, timed } from '../system.ts'
import { loadHoldfast } from './holdfast.ts'

const TYPE = 'noop'

export const holdfastSqlite = async (): Promise<System> => {
  const { connect, silentLogger } = await loadHoldfast()
  let client: Client
  let inserted = 0

  return {
    name: 'holdfast-sqlite',
    keeps: {
      durability: 'fsync per commit (WAL, FULL)',
      lease: 'lease, heartbeat, fencing token',
      history: 'every move',
      rows: 'completed rows with output',
    },
    hasConcurrentCallers: true,

    async open(dir) {
      client = await connect(`sqlite:${join(dir, 'holdfast.db')}`, { logger: silentLogger })
    },

    insertBatch: (count, perCall) =>
      timed(async () => {
        for (let start = 0; start < count; start += perCall) {
          const items = Array.from({ length: Math.min(perCall, count - start) }, (_, i) => ({
            type: TYPE,
            input: payload(start + i),
          }))
          const results = await client.submitMany(items)
          for (const result of results) if (!result.ok) throw result.error
        }
      }),

    async insertOne() {
      await client.submit(TYPE, payload(inserted++))
    },

    async drain(count, concurrency): Promise<Timed> {
      let left = count
      let finished = (): void => {}
      const all = new Promise<void>((resolve) => (finished = resolve))
      const onTaskEnd = (): void => {
        if (--left === 0) finished()
      }
      const worker = client.worker({ concurrency, hooks: { onTaskEnd } }).handle(TYPE, async () => {})
      const took = await timed(() => {
        worker.start()
        return all
      })
      await worker.stop()
      const completed = await client.count({ status: 'completed' }, { cap: count + 1 })
      if (completed.count !== count) throw new Error(`${completed.count} of ${count} tasks were completed`)
      return took
    },

    async latency(count) {
      const samples: number[] = []
      let start = 0
      let ended = (): void => {}
      const worker = client
        .worker({ hooks: { onTaskEnd: () => ended() } })
        .handle(TYPE, async () => void samples.push(performance.now() - start))
        .start()
      for (let i = 0; i < count; i++) {
        await idleGap()
        const end = new Promise<void>((done) => (ended = done))
        start = performance.now()
        await client.submit(TYPE, payload(i))
        await end
      }
      await worker.stop()
      return samples
    },

    async idle(ms) {
      const worker = client
        .worker()
        .handle(TYPE, async () => {})
        .start()
      const took = await timed(() => new Promise((done) => setTimeout(done, ms)))
      await worker.stop()
      return took
    },

    close: () => client.close(),
  }
}
