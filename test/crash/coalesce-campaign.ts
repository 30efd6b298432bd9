/** Triggers from several processes while others run what they made: whether the last trigger of each key was followed by a run. */
import { isContactLost } from '../../src/core/errors.ts'
import { connect, silentLogger } from '../../src/index.ts'
import { openAt } from './address.ts'
import type { Plant } from './planted.ts'
import { folder, pause, start, until } from './processes.ts'
import { chance } from './seed.ts'
import { readWitnesses, type WitnessLine } from './witness.ts'

export interface CoalesceCampaign {
  readonly address: string
  readonly processes: number
  readonly triggers: number
  readonly keys: number
  readonly seed: number
  readonly plant?: Plant
}

export const coalesceCampaign = async (plan: CoalesceCampaign) => {
  const { address, processes, triggers, keys, seed, plant = 'none' } = plan
  const place = folder()
  const { between } = chance(seed)
  const client = await connect(await openAt(address), { logger: silentLogger })
  const shared = { file: address, folder: place, keys, plant }
  const begin = (count: number) => start('coalescer', { ...shared, seed: between(0, 1e9), triggers: count })
  const producers = Array.from({ length: processes }, () => begin(triggers / processes))
  const workers = Array.from({ length: 2 }, () => begin(0))
  const violations = new Set<string>()
  let [looks, areDone] = [0, false]
  const stillUnclaimed = async (ids: readonly string[]): Promise<number> => {
    const tasks = await Promise.all(ids.map((id) => patiently(() => client.get(id))))
    return tasks.filter(({ status, attempts }) => status === 'pending' && attempts === 0).length
  }
  const watching = (async () => {
    while (!areDone) {
      looks++
      await pause(5)
      const { tasks } = await patiently(() => client.list({ status: 'pending', limit: 1_000 }))
      const unclaimed = Map.groupBy(
        tasks.filter(({ attempts }) => attempts === 0),
        ({ idempotencyKey }) => idempotencyKey,
      )
      // A page is not read at one instant: two that are still there at a second look were there together.
      for (const [key, some] of unclaimed)
        if (some.length > 1 && (await stillUnclaimed(some.map(({ id }) => id))) > 1)
          violations.add(`${key} has ${some.length} tasks that were never claimed`)
    }
  })()
  await Promise.all(producers.map((child) => child.end(240_000 + triggers * 100)))
  await until('every task has ended', async () => {
    const { count } = await patiently(() => client.count({ status: ['pending', 'running'] }))
    return count === 0
  })
  areDone = true
  await watching
  for (const worker of workers) worker.signal('SIGTERM')
  await Promise.all(workers.map((child) => child.end()))
  await client.close()
  const witness = readWitnesses(place)
  const of = (what: string): WitnessLine[] => witness.filter((line) => line.what === what)
  const starts = Map.groupBy(of('start'), (line) => line['key'] as string)
  for (const [key, lines] of Map.groupBy(of('trigger'), (line) => line['key'] as string)) {
    const last = lines.at(-1)!
    if (!starts.get(key)?.some(({ mono }) => mono > last.mono))
      violations.add(`no run of ${key} began after its last trigger`)
  }
  return { triggered: of('triggered').length, runs: of('start').length, looks, violations: [...violations] }
}

/** On a machine with far more work than processors the store may be away for a moment. */
const patiently = async <T>(ask: () => Promise<T>): Promise<T> => {
  for (let tries = 1; ; tries++)
    try {
      return await ask()
    } catch (error) {
      if (tries === 10 || !isContactLost(error)) throw error
      await pause(500)
    }
}
