/** kill -9 of workers in the middle of a task, again and again: nothing is lost, and what they held is soon free. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import type { TaskRecord } from '../../src/store/store.ts'
import type { Plant } from './planted.ts'
import { type Child, cleanUp, folder, pause, start, until } from './processes.ts'
import { readRecords, violations } from './runs.ts'
import { chance, percentile, report, seededChance } from './seed.ts'
import { readWitness, readWitnesses, unfinished, type WitnessLine } from './witness.ts'

cleanUp()

const LEASE = 1_000

interface Campaign {
  readonly kills: number
  /** That may be killed; one more never is, because somebody must be there to find what the others held. */
  readonly processes: number
  /** Tasks waiting at any time, so that every process has something to do. */
  readonly backlog: number
  readonly seed: number
  readonly plant?: Plant
}

interface Kill {
  readonly at: number
  /** Begun and not ended when the process died. */
  readonly held: readonly WitnessLine[]
}

const campaign = async ({ kills, processes, backlog, seed, plant = 'none' }: Campaign) => {
  const place = folder()
  const file = join(place, 'kill.db')
  const { between, pick } = chance(seed)
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  const submitted: string[] = []
  const fill = async (): Promise<void> => {
    const { count } = await client.count({ status: 'pending' })
    const shared = { maxRetries: null, retryPolicy: { base: '50ms', max: '200ms' } } as const
    const items = Array.from({ length: Math.max(0, backlog - count) }, () => ({ type: 'work', input: null }))
    for (const result of await client.submitMany(items, shared)) if (result.ok) submitted.push(result.task.id)
  }
  const begin = (): Child =>
    start('worker', {
      file,
      folder: place,
      seed: between(0, 1e9),
      concurrency: 4,
      takes: [20, 400],
      leaseTtl: `${LEASE}ms`,
      plant,
    })

  await fill()
  const survivor = begin()
  const children = Array.from({ length: processes }, begin)
  const killed: Kill[] = []
  while (killed.length < kills) {
    await pause(between(200, 450))
    const busy = (): Child[] =>
      children.filter((child) => child.isAlive && unfinished(readWitness(place, child.pid)).length > 0)
    await until('a process has a task under way', async () => {
      await fill()
      return busy().length > 0
    })
    const victim = pick(busy())
    const at = Date.now()
    await victim.kill()
    // It may have ended its task just before: then the kill hit nothing, and does not count.
    const held = unfinished(readWitness(place, victim.pid))
    if (held.length > 0) killed.push({ at, held })
    children[children.indexOf(victim)] = begin()
  }
  await until('every task has ended', async () => {
    const counts = await Promise.all(['pending', 'running'].map((status) => client.count({ status })))
    return counts.every(({ count }) => count === 0)
  })
  for (const child of [survivor, ...children]) child.signal('SIGTERM')
  await Promise.all([survivor, ...children].map((child) => child.end()))
  await client.close()
  const witness = readWitnesses(place)
  const records = await readRecords(file, submitted)
  const wrong = violations({ submitted, records, witness, leaseTtl: LEASE })
  const byId = new Map(records.flatMap((record) => (record === null ? [] : [[record.id, record] as const])))
  const recoveries = killed.flatMap(({ at, held }) => held.map((line) => recovery(byId.get(line.task!), line, at)))
  return { submitted, killed, records, wrong, recoveries }
}

/** How long after the kill the task was pending again; NaN when it never was. */
const recovery = (record: TaskRecord | undefined, { fence }: WitnessLine, killedAt: number): number => {
  const history = record?.history ?? []
  const claims = history.filter(({ move }) => move === 'claim')
  const lost = history.find(({ move, op }) => move === 'lose-lease' && op === claims[fence! - 1]?.op)
  return lost === undefined ? Number.NaN : lost.at - killedAt
}

test('100 workers killed in the middle of a task lose nothing, and their tasks are free again within the lease and a second', async () => {
  const { seed } = seededChance('kill')
  const { submitted, killed, records, wrong, recoveries } = await campaign({
    kills: 100,
    processes: 5,
    backlog: 200,
    seed,
  })
  const [p50, p99, max] = [percentile(recoveries, 0.5), percentile(recoveries, 0.99), Math.max(...recoveries)]
  report(
    `kill: ${killed.length} kills, ${recoveries.length} runs cut short, ${submitted.length} tasks, ${wrong.length} violations`,
  )
  report(`kill: pending again after the kill, lease ${LEASE} ms: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`)
  expect(wrong.slice(0, 5)).toEqual([])
  expect(killed.length).toBeGreaterThanOrEqual(100)
  expect(records.filter((record) => record?.status !== 'completed')).toEqual([])
  expect(recoveries.filter((took) => Number.isNaN(took))).toEqual([])
  expect(max).toBeLessThanOrEqual(LEASE + 1_000)
})

test('workers that have no slot free still free what a killed one held', async () => {
  const place = folder()
  const file = join(place, 'taken.db')
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  const submit = async (maxRetries: number): Promise<string> => (await client.submit('work', null, { maxRetries })).id
  const victim = start('worker', {
    file,
    folder: place,
    seed: 1,
    concurrency: 2,
    takes: [60_000, 60_000],
    leaseTtl: `${LEASE}ms`,
  })
  await victim.heard('ready')
  const [pending, dead] = [await submit(1), await submit(0)]
  await until('both are under way', () => unfinished(readWitness(place, victim.pid)).length === 2)

  const busy = Promise.withResolvers<void>()
  const worker = client.worker({ concurrency: 1, leaseTtl: `${LEASE}ms` }).handle('long', () => busy.promise)
  const { id: long } = await client.submit('long', null)
  worker.start()
  await until('the only slot is taken', async () => (await client.get(long)).status === 'running')
  await victim.kill()
  const killedAt = Date.now()
  await until('the task is pending again', async () => (await client.get(pending)).status === 'pending', 20_000)
  await until('the one without retries is dead', async () => (await client.get(dead)).status === 'failed', 20_000)
  const lostAt = (await client.history(pending)).find(({ move }) => move === 'lose-lease')!.at
  report(`kill: with no slot free, pending again after ${lostAt - killedAt} ms`)
  // One look more than with a free slot: a worker looks every two seconds when nothing wakes it.
  expect(lostAt - killedAt).toBeLessThanOrEqual(LEASE + 2_000 + 1_000)
  busy.resolve()
  await client.close()
})

test('a store that completes a task before it has run is noticed', async () => {
  const { wrong } = await campaign({ kills: 3, processes: 2, backlog: 30, seed: 2, plant: 'complete-on-claim' })
  expect(wrong.some((sentence) => sentence.includes('no witness saw'))).toBe(true)
})

test('a reclaimer that does not wait for the end of a lease is noticed', async () => {
  const { wrong } = await campaign({ kills: 3, processes: 2, backlog: 30, seed: 3, plant: 'hasty-reclaim' })
  expect(wrong.some((sentence) => sentence.includes('lost a lease'))).toBe(true)
})
