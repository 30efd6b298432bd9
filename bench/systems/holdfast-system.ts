/** Holdfast on any of its stores, as the benchmark uses it. */
import type { Client } from '../../src/index.ts'
import { idleGap, type Keeps, type Place, payload, type System, type Timed, timed } from '../system.ts'

const TYPE = 'noop'

export interface HoldfastOn {
  readonly name: string
  readonly keeps: Keeps
  /** Whether completed tasks still exist after a drain and can be counted. */
  readonly keepsCompleted: boolean
  connect(place: Place): Promise<Client>
}

export const holdfastSystem = ({ name, keeps, keepsCompleted, connect }: HoldfastOn): System => {
  let client: Client
  let inserted = 0

  return {
    name,
    keeps,
    hasConcurrentCallers: true,

    async open(place) {
      client = await connect(place)
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
      await checkDrained(client, count, keepsCompleted)
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

const checkDrained = async (client: Client, count: number, keepsCompleted: boolean): Promise<void> => {
  const { count: completed } = await client.count({ status: 'completed' }, { cap: count + 1 })
  const { count: all } = await client.count({}, { cap: count + 1 })
  const expected = keepsCompleted ? count : 0
  if (completed !== expected || all !== expected)
    throw new Error(`${completed} of ${all} tasks are completed; ${expected} were to be there`)
}
