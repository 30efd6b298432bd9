/** A server whose reads may be stale, as on NATS with direct reads: that costs conflicts, and nothing else. */
import { expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import type { Entry, Mark } from '../../src/store/kv/access/key-value.ts'
import { Random } from '../../src/testing/random.ts'
import { openKvInMemory } from './open.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'

const TASKS = 300
const CLIENTS = 4

interface Faults {
  /** The share of reads that return what was there before the last write. */
  readonly stale: number
  /** The planted bug: a write does not compare. */
  readonly anyhow?: boolean
}

class StaleKeyValue extends MemoryKeyValue {
  readonly #map: KeyValueMap
  readonly #before: Map<string, Entry>
  readonly #random: Random
  readonly #faults: Faults
  stale = 0
  conflicts = 0

  constructor(map: KeyValueMap, before: Map<string, Entry>, random: Random, faults: Faults) {
    super(map)
    this.#map = map
    this.#before = before
    this.#random = random
    this.#faults = faults
  }

  override async get(key: string): Promise<Entry | null> {
    const old = this.#before.get(key)
    if (old === undefined || !this.#random.chance(this.#faults.stale)) return super.get(key)
    this.stale++
    return old
  }

  override async update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    // As long as a request takes: others write meanwhile.
    await new Promise((later) => setImmediate(later))
    const now = this.#map.entries.get(key)
    const written = await super.update(key, value, this.#faults.anyhow ? (now?.mark ?? mark) : mark)
    if (written === null) this.conflicts++
    else if (now !== undefined) this.#before.set(key, now)
    return written
  }
}

const run = async (faults: Faults) => {
  const map = new KeyValueMap()
  const before = new Map<string, Entry>()
  const random = new Random(7)
  const places = Array.from({ length: CLIENTS }, () => new StaleKeyValue(map, before, random, faults))
  const clients = await Promise.all(places.map((kv) => connect(openKvInMemory(kv), { logger: silentLogger })))
  const runs: string[] = []
  await clients[0]!.submitMany(Array.from({ length: TASKS }, () => ({ type: 'work', input: null })))
  const finish = async (client: (typeof clients)[number]): Promise<void> => {
    const worker = client.worker({ concurrency: 5 }).handle('work', async (_, ctx) => {
      runs.push(`${ctx.task.id} ${ctx.fence}`)
      await new Promise((later) => setImmediate(later))
    })
    await worker.drain()
  }
  await Promise.all(clients.map(finish))
  // The tasks that a process ended are in the index when it closes.
  for (const client of clients) await client.close()
  const truth = await connect(openKvInMemory(new MemoryKeyValue(map)), { logger: silentLogger })
  const ended = (await truth.count({ status: 'completed' })).count
  await truth.close()
  const sum = (of: 'stale' | 'conflicts'): number => places.reduce((all, place) => all + place[of], 0)
  return { ended, runs, stale: sum('stale'), conflicts: sum('conflicts') }
}

test('one read in five that is old costs conflicts only: every task runs once and completes', async () => {
  const { ended, runs, stale, conflicts } = await run({ stale: 0.2 })
  expect(stale).toBeGreaterThan(20)
  expect(conflicts).toBeGreaterThan(0)
  expect(ended).toBe(TASKS)
  expect(runs.length).toBe(TASKS)
  expect(new Set(runs).size).toBe(TASKS)
})

test('a store that writes without comparing runs tasks twice', async () => {
  const { runs } = await run({ stale: 0.2, anyhow: true })
  expect(runs.length).toBeGreaterThan(TASKS)
})
